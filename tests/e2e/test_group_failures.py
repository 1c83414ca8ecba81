"""Groups of several ranks that fail: as one, at once, naming the rank; and serve again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from msx_archiver.errors import PackError
from tests.e2e.groups import LAYOUTS, RANKS, Recorder, ask, fault_model, header, last_error, long_but, ranks
from tests.e2e.server import RunningServer, children, client_of, new_store, pack_service, run_server, wait_until
from tests.phrases import did_not_respond, worker_died
from tests.processes import unreaped

pytestmark = pytest.mark.e2e

EACH_RANK = [(layout, rank) for layout in ("tp2", "pp2", "pptp4") for rank in range(RANKS[layout])]
LATER = {"initial_workers": 1, "synchronous": "false"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Faults in a group of two: each test leaves it READY."""
    folder = tmp_path_factory.mktemp("faults")
    fault_model(folder, "tp2", "rankSkewTimeout: 2\nresponseTimeout: 20\nbatchSize: 2\n")
    with run_server(folder, "--models", "tp2.mar") as running:
        yield running


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[RunningServer]:
    new_store(tmp_path)
    with run_server(tmp_path, properties="max_request_size=20000000\n") as running:
        yield running


def ready_again(server: RunningServer, model: str, old: list[int]) -> None:
    """The next generation serves, and nothing is left of the old one."""

    def replaced() -> bool:
        return server.describe(model)["state"] == "READY" and not set(old) & set(pids(server, model))

    wait_until(replaced, "the next generation serves", server.tail)
    wait_until(lambda: not unreaped(old), "no process of the old one is left")
    assert ask(server, model, b"after") == (200, "after")


def pids(server: RunningServer, model: str) -> list[int]:
    """Process ids of the ranks that have a process."""
    return [one["pid"] for one in ranks(server, model) if "pid" in one]


# -- SIGKILL --


@pytest.mark.parametrize(("layout", "rank"), long_but(EACH_RANK, ("tp2", 1), ("pp2", 0)))
def test_sigkill_of_each_rank_mid_stream(fresh: RunningServer, layout: str, rank: int) -> None:
    """The client knows at once; what waited is served by the next generation, which meets at another port."""
    recorder = Recorder(fresh.folder, layout)
    assert fresh.register(recorder.archive).status_code == 200
    old, folders = pids(fresh, layout), work_dirs(fresh)
    recorder.open(1)
    with ThreadPoolExecutor(2) as pool, client_of(fresh.info["inference"], None) as client:
        order = header(steps=2, gates=recorder.gates)
        with client.stream("POST", f"/predictions/{layout}", content=b"x", headers=order) as reply:
            pieces = reply.iter_text()
            assert next(pieces) == "1 of 0\n"
            waiting = pool.submit(ask, fresh, layout)
            wait_until(lambda: accepted(fresh) == 2, "the other one waits")
            os.kill(old[rank], signal.SIGKILL)
            with pytest.raises(httpx.RemoteProtocolError):
                next(pieces)
        assert waiting.result()[0] == 200
    words = f"Rank {rank} (pid {old[rank]}) was ended by signal 9 (SIGKILL)."
    assert last_error(fresh, layout) == words
    wait_until(lambda: fresh.describe(layout)["state"] == "READY", "it serves again", fresh.tail)
    assert ask(fresh, layout)[0] == 200
    wait_until(lambda: not unreaped(old), "no process of the old one is left")
    wait_until(lambda: not folders & work_dirs(fresh), "no folder of the old one is left")
    ports = [line["env"]["MASTER_PORT"] for line in recorder.of_rank(0) if "env" in line]
    assert len(ports) == 2
    assert ports[0] != ports[1]


def accepted(server: RunningServer) -> float:
    return server.metric("msx_requests_in_flight") + server.metric("msx_queue_depth")


def work_dirs(server: RunningServer) -> set[str]:
    return {entry.name for entry in (server.store / ".msx" / "run").iterdir()}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("when", ["idle", "running"])
def test_sigkill(server: RunningServer, rank: int, when: str) -> None:
    old = pids(server, "tp2")
    with ThreadPoolExecutor(3) as pool:
        answers = []
        if when == "running":
            answers = [pool.submit(ask, server, "tp2", steps=1, gates=server.folder / "shut")]
            wait_until(lambda: server.metric("msx_requests_in_flight", model="tp2") == 1, "it runs")
        os.kill(old[rank], signal.SIGKILL)
        words = f"Rank {rank} (pid {old[rank]}) was ended by signal 9 (SIGKILL)."
        assert [answer.result() for answer in answers] == [(507, worker_died(words))] * len(answers)
    ready_again(server, "tp2", old)
    assert last_error(server, "tp2") == words


def held(server: RunningServer, model: str) -> float:
    """Requests that are queued or that a group has."""
    return server.metric("msx_queue_depth", model=model) + server.metric("msx_requests_in_flight", model=model)


def test_the_others_in_the_queue_are_served(server: RunningServer) -> None:
    old = pids(server, "tp2")
    with ThreadPoolExecutor(20) as pool:
        running = pool.submit(ask, server, "tp2", steps=1, gates=server.folder / "shut")
        wait_until(lambda: server.metric("msx_requests_in_flight", model="tp2") == 1, "it runs")
        waiting = [pool.submit(ask, server, "tp2", str(number).encode()) for number in range(18)]
        wait_until(lambda: held(server, "tp2") >= 17, "they wait, in the queue or in rank 0's socket")
        os.kill(old[1], signal.SIGKILL)
        assert running.result()[0] == 507
        assert [answer.result() for answer in waiting] == [(200, str(number)) for number in range(18)]
    ready_again(server, "tp2", old)


# -- other ends of one rank --


@pytest.mark.parametrize("rank", long_but([0, 1], 1))
@pytest.mark.parametrize("others", ["answer", "wait"])
def test_one_rank_exits(server: RunningServer, rank: int, others: str) -> None:
    old = pids(server, "tp2")
    status, message = ask(server, "tp2", rank=rank, way="exit", others=others)
    if (rank, others) == (1, "answer"):
        assert status in (200, 500)  # rank 0 may be the first
    else:
        assert (status, message) == (500, worker_died(f"Rank {rank} (pid {old[rank]}) exited with code 3."))
    ready_again(server, "tp2", old)
    assert last_error(server, "tp2") == f"Rank {rank} (pid {old[rank]}) exited with code 3."


@pytest.mark.parametrize("rank", long_but([0, 1], 1))
@pytest.mark.parametrize("others", ["answer", "wait"])
def test_one_rank_raises(server: RunningServer, rank: int, others: str) -> None:
    """It is not an error of the request: the client is told which rank it was, unless it had its answer before."""
    old = pids(server, "tp2")
    status, message = ask(server, "tp2", rank=rank, way="raise", others=others)
    words = f"Rank {rank} failed while rank {1 - rank} did not: RuntimeError: rank {rank} is out of luck"
    if (rank, others) == (1, "answer"):
        assert status in (200, 500)
    else:
        assert (status, message) == (500, worker_died(words))
    ready_again(server, "tp2", old)
    assert last_error(server, "tp2") == words


@pytest.mark.parametrize("rank", [0, 1])
def test_one_rank_raises_in_a_stream(server: RunningServer, rank: int) -> None:
    old = pids(server, "tp2")
    with pytest.raises(httpx.RemoteProtocolError):
        ask(server, "tp2", steps=3, at=2, rank=rank, way="raise", others="wait")
    ready_again(server, "tp2", old)
    assert f"Rank {rank} failed while rank {1 - rank} did not" in last_error(server, "tp2")


def test_the_same_error_on_all_ranks_is_the_handlers(server: RunningServer) -> None:
    old = pids(server, "tp2")
    for _ in range(3):
        status, message = ask(server, "tp2", way="raise")
        assert (status, message) == (503, "Prediction failed: RuntimeError: rank 0 is out of luck")
    assert ask(server, "tp2", b"fine") == (200, "fine")
    assert pids(server, "tp2") == old


@pytest.mark.parametrize(("rank", "extra"), [(0, 1), (1, 1), (0, -1), (1, -1)])
def test_streams_of_different_lengths(server: RunningServer, rank: int, extra: int) -> None:
    """Rank 0's chunks are the answer, whatever the others do; then the group ends."""
    old = pids(server, "tp2")
    steps = 3 + (extra if rank == 0 else 0)
    answer = ask(server, "tp2", steps=3, rank=rank, extra=extra)
    assert answer == (200, "".join(f"{step}\n" for step in range(1, steps + 1)))
    ready_again(server, "tp2", old)
    assert last_error(server, "tp2").startswith("Rank 1 took ")


def test_a_rank_that_hangs_is_named_by_the_others(server: RunningServer) -> None:
    """The client has its answer; rankSkewTimeout ends the group, so that the next one does not wait for it."""
    old = pids(server, "tp2")
    assert ask(server, "tp2", b"x", rank=1, way="hang") == (200, "x")
    ready_again(server, "tp2", old)
    assert last_error(server, "tp2") == "Rank 1 did not end a call within rankSkewTimeout (2 s) after rank 0."


def test_rank_0_hangs(server: RunningServer) -> None:
    old = pids(server, "tp2")
    words = "Rank 0 did not end a call within rankSkewTimeout (2 s) after rank 1."
    assert ask(server, "tp2", b"x", rank=0, way="hang") == (500, worker_died(words))
    ready_again(server, "tp2", old)


@pytest.mark.parametrize("rank", long_but([0, 1], 1))
@pytest.mark.parametrize("way", ["hang", "freeze"])
def test_a_rank_hangs_while_the_other_waits_for_it(server: RunningServer, rank: int, way: str) -> None:
    """In a collective that no time-out ends: the group does not wait for its responseTimeout."""
    old = pids(server, "tp2")
    words = f"Rank {rank} did not come to all_reduce[0,1] within rankSkewTimeout (2 s) after rank {1 - rank}."
    assert ask(server, "tp2", rank=rank, way=way, others="all_reduce") == (500, worker_died(words))
    ready_again(server, "tp2", old)


@pytest.mark.parametrize("rank", long_but([0, 1], 1))
def test_a_rank_dies_when_all_is_answered(server: RunningServer, rank: int) -> None:
    old = pids(server, "tp2")
    assert ask(server, "tp2", b"x", rank=rank, when="after") == (200, "x")
    wait_until(lambda: pids(server, "tp2") != old, "it ends")
    ready_again(server, "tp2", old)
    assert last_error(server, "tp2").startswith(f"Rank {rank} (pid {old[rank]}) exited with code 3.")


# -- time limits --


def test_a_rank_that_never_reads_does_not_hold_rank_0(fresh: RunningServer) -> None:
    """Rank 0 writes 10 MB to a rank that is frozen: the group ends by responseTimeout."""
    archive = fault_model(fresh.folder, "tp2", "rankSkewTimeout: 600\nresponseTimeout: 2\n")
    assert fresh.register(archive).status_code == 200
    old = pids(fresh, "tp2")
    assert ask(fresh, "tp2", b"x", rank=1, way="hang") == (200, "x")
    status, message = ask(fresh, "tp2", b"x" * (10_000_000))
    assert (status, message) == (500, worker_died(did_not_respond("2 s")))
    ready_again(fresh, "tp2", old)


def test_the_log_says_which_rank_waited_for_which(fresh: RunningServer) -> None:
    """A stage may wait long for another one to compute: responseTimeout is the limit."""
    assert (
        fresh.register(fault_model(fresh.folder, "pp2", "rankSkewTimeout: 1\nresponseTimeout: 4\n")).status_code == 200
    )
    status, message = ask(fresh, "pp2", rank=1, way="hang", others="send")
    waited = "4 s; rank 0 waits in send[0,1] for rank 1"
    assert (status, message) == (500, worker_died(did_not_respond(waited)))


def test_all_ranks_hang(fresh: RunningServer) -> None:
    assert fresh.register(fault_model(fresh.folder, "pptp4", "responseTimeout: 1\n")).status_code == 200
    old = pids(fresh, "pptp4")
    status, message = ask(fresh, "pptp4", way="hang")
    assert (status, message) == (500, worker_died(did_not_respond("1 s")))
    ready_pp(fresh, old)


def ready_pp(server: RunningServer, old: list[int]) -> None:
    wait_until(lambda: not unreaped(old), "no process of the old one is left")
    wait_until(lambda: server.describe("pptp4")["state"] == "READY", "the next generation serves", server.tail)


def test_an_idle_rank_that_answers_no_ping(fresh: RunningServer) -> None:
    assert fresh.register(fault_model(fresh.folder, "tp2")).status_code == 200
    old = pids(fresh, "tp2")
    os.kill(old[1], signal.SIGSTOP)
    wait_until(lambda: pids(fresh, "tp2") not in ([], old), "it ends", fresh.tail)
    ready_again(fresh, "tp2", old)
    assert last_error(fresh, "tp2") == "The worker missed its heartbeat for 5 s (rank 1)."


# -- loading --


def load_of(layout: str = "tp2", **order: Any) -> str:
    members = ", ".join(f"{name}: {value}" for name, value in order.items())
    return f"load: {{{members}}}\n"


@pytest.mark.parametrize(("way", "words"), [("raise", "could not be loaded on rank 1: "), ("exit", "Rank 1 (pid ")])
def test_a_rank_that_fails_to_load(fresh: RunningServer, way: str, words: str) -> None:
    """The others wait in `initialize` for ever, and are ended at once."""
    archive = fault_model(fresh.folder, "pptp4", load_of(rank=1, way=way, others="wait"))
    reply = fresh.register(archive)
    assert reply.status_code == 500
    assert words in reply.json()["message"]
    wait_until(lambda: not children(fresh.process.pid), "no rank is left", fresh.tail)
    assert fresh.management.get("/models/pptp4").status_code == 404


def test_a_rank_that_is_slow_to_load(fresh: RunningServer) -> None:
    archive = fault_model(fresh.folder, "pp2", "startupTimeout: 8\n" + load_of(rank=1, way="hang"))
    message = fresh.register(archive).json()["message"]
    assert "startupTimeout (8 s; rank 1 was rank 1 is at its weights)" in message


# -- configurations --


WRONG = {
    "parallelType: tp\nparallelLevel: 2\nmsrun: {nproc-per-node: 2}\n": ("nproc-per-node", "parallelLevel"),
    LAYOUTS["pptp4"].replace("pipelineStages: 2", "pipelineStages: 3"): ("pipelineStages", "nproc-per-node"),
    "parallelType: pp\nmsrun: {nproc-per-node: 4}\nparallel: {pipelineStages: 2}\n": (
        "pipelineStages",
        "nproc-per-node",
    ),
    "parallelType: tp\nmsrun: {nproc-per-node: 4}\nparallel: {tensorParallel: 2}\n": (
        "tensorParallel",
        "nproc-per-node",
    ),
    "parallelType: tp\nmsrun: {nproc-per-node: 4}\nparallel: {pipelineStages: 2}\n": ("pipelineStages", "parallelType"),
    "parallelType: pptp\nmsrun: {nproc-per-node: 4}\n": ("pipelineStages", "tensorParallel"),
    "parallelType: tp\nmsrun: {nproc-per-node: 2, nnodes: 2}\nparallel: {nodes: 4}\n": (
        "msrun.nnodes",
        "parallel.nodes",
    ),
    "parallelType: tp\nmsrun: {nproc-per-node: 2}\ntorchrun: {nproc-per-node: 2}\n": ("torchrun", "msrun"),
    "msrun: {nproc-per-node: 2}\n": ("nproc-per-node", "parallelType"),
    "parallelType: tp\nmsrun: {nproc-per-node: 2}\ndeviceIds: [1]\n": ("deviceIds", "needs 2"),
    "parallelType: custom\n": ("parallelType", "parallelLevel"),
}


def test_wrong_configurations_are_refused(fresh: RunningServer) -> None:
    """When packing and when registering, naming the keys that do not fit each other."""
    for number, (config, words) in enumerate(WRONG.items()):
        with pytest.raises(PackError) as packing:
            pack_service("echo", fresh.store, config=config, model=f"packed{number}")
        reply = fresh.register(unpacked_model(fresh.store / f"m{number}", config))
        assert reply.status_code == 400
        for said in (str(packing.value), reply.json()["message"]):
            assert [word for word in words if word not in said] == [], said


def unpacked_model(folder: Path, config: str) -> Path:
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "h.py").write_text("def handle(data, context):\n    return data\n")
    (folder / "config.yaml").write_text(config)
    manifest = '{"model": {"modelName": "m", "handler": "h.py", "configFile": "config.yaml"}}'
    (folder / "MAR-INF" / "MANIFEST.json").write_text(manifest)
    return folder
