"""Workers of stages that another frontend takes over, with the shared memory between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.e2e.server import SERVICES, RunningServer, client_of, new_store, run_server, wait_until
from tests.e2e.test_handover import upgraded
from tests.e2e.test_segments import at_once, begun, shared, sum_of
from tests.e2e.test_supervisor import SUPERVISED, crash_begun, ranks_of

pytestmark = pytest.mark.e2e

CHAIN = """
stages:
  make: {handler: "large_values.py:Make"}
  turn: {handler: "large_values.py:Turn"}
  sum: {handler: "large_values.py:Sum"}
"""
LARGE, SMALL = 1_000_000, 5


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """At its end no value is lent."""
    store = new_store(tmp_path)
    (config := store / "large.yaml").write_text(CHAIN)
    files = str(SERVICES / "large_values.py")
    pack(PackOptions(model_name="large", config_file=str(config), extra_files=files, export_path=store, force=True))
    with run_server(tmp_path, "--models", "large.mar", properties=SUPERVISED, fork=False) as running:
        yield running
        wait_until(lambda: all(not one["lent"] and not one["reads"] for one in shared(running)), "all is given back")


def segments(server: RunningServer) -> int:
    return sum(one["segments"] for one in shared(server))


def pids(server: RunningServer) -> list[int]:
    """Processes of the server that answers now."""
    return [worker["pid"] for stage in server.describe("large")["stages"] for worker in stage["workers"]]


def ask_anew(server: RunningServer) -> str:
    """On a new connection: the server before may have kept that of `server`."""
    with client_of(server.info["inference"]) as client:
        return client.post("/predictions/large", content=str(LARGE)).text


def test_the_next_server_has_the_workers_and_new_segments(server: RunningServer) -> None:
    before = ranks_of(server)
    for _ in range(3):
        assert server.predict("large", str(LARGE)).text == sum_of(LARGE)
        upgraded(server)
        assert (ranks_of(server), segments(server)) == (before, 0)
        assert server.predict("large", str(LARGE)).text == sum_of(LARGE)  # perhaps by the old one, in frames
        assert ask_anew(server) == sum_of(LARGE)
        assert segments(server) == 2  # of the stages before the last one


def test_after_a_crash_the_workers_go_on(server: RunningServer, tmp_path: Path) -> None:
    """A request that ran had values in all of them."""
    before, gate = ranks_of(server), tmp_path / "gate"
    for _ in range(2):
        with at_once(server, f"{LARGE} turn:{gate}") as replies:
            wait_until(Path(f"{gate}.begun").exists, "the stage has begun")
            crash_begun(server)
            assert replies[0].exception() is not None
            gate.touch()
        server.wait_ready()
        assert ask_anew(server) == sum_of(LARGE)
        assert (ranks_of(server), segments(server)) == (before, 2)
        gate.unlink()
        Path(f"{gate}.begun").unlink()


def test_requests_with_values_in_frames_run_on_in_the_last_stage(server: RunningServer, tmp_path: Path) -> None:
    before, gate = ranks_of(server), tmp_path / "gate"
    with at_once(server, f"{SMALL} sum:{gate}") as replies:
        wait_until(Path(f"{gate}.begun").exists, "the stage has begun")
        upgraded(server)
        assert begun(gate) in before
        gate.touch()
        assert replies[0].result().text == sum_of(SMALL)
        assert ask_anew(server) == sum_of(LARGE)
    assert ranks_of(server) == before


def test_workers_whose_shared_memory_is_used_for_long_start_anew(server: RunningServer, tmp_path: Path) -> None:
    before, gate = ranks_of(server), tmp_path / "gate"
    with at_once(server, f"{LARGE} sum:{gate}") as replies:
        wait_until(Path(f"{gate}.begun").exists, "the stage has begun")
        upgraded(server)
        assert ask_anew(server) == sum_of(LARGE)
        assert not {*before} & {*pids(server)}
        gate.touch()
        assert replies[0].result().text == sum_of(LARGE)
    wait_until(lambda: "use its shared memory for long" in server.log.read_text(), "the log says so", server.tail)
