"""Large values between stages, through real workers: in shared memory and in frames, and after any of them dies."""

from __future__ import annotations

import os
import re
import signal
import textwrap
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from tests.descriptors import descriptors_of
from tests.e2e.server import SERVICES, RunningServer, new_store, run_server, wait_until

pytestmark = pytest.mark.e2e

MIB = 1 << 20
CHAIN = """
responseTimeout: 20
{}
stages:
  make: {{handler: "large_values.py:Make", device: none}}
  turn: {{handler: "large_values.py:Turn", device: none, workers: 2}}
  sum: {{handler: "large_values.py:Sum", device: none}}
"""
DIAMOND = """
edgeCapacity: 1
edgeMemory: 1
stages:
  make: {handler: "large_values.py:Make", device: none}
  left: {handler: "large_values.py:Turn", device: none, from: [make]}
  right: {handler: "large_values.py:Turn", device: none, from: [make]}
  sum: {handler: "large_values.py:Sum", device: none, from: [left, right]}
"""


def sum_of(size: int, byte: int = 8) -> str:
    return f"{size}:{zlib.crc32(bytes([byte]) * size)}"


@contextmanager
def served(folder: Path, config: str, descriptors: int | None = None) -> Iterator[RunningServer]:
    """A server with these stages. At its end no value is lent, and the server holds the pools' descriptors alone."""
    store = new_store(folder)
    file = store / "large.yaml"
    file.write_text(textwrap.dedent(config))
    options = PackOptions(
        model_name="large",
        config_file=str(file),
        extra_files=str(SERVICES / "large_values.py"),
        export_path=store,
        force=True,
    )
    archive = pack(options)
    with run_server(folder, descriptors=descriptors) as server:
        assert server.register(archive).status_code == 200
        yield server
        wait_until(lambda: all(not one["lent"] and not one["reads"] for one in shared(server)), "all is given back")
        held = lambda: segments(server) == sum(one["segments"] for one in shared(server))  # noqa: E731
        wait_until(held, "the server holds those of the pools", server.tail)


def shared(server: RunningServer) -> list[dict[str, int]]:
    stages: list[dict[str, Any]] = server.describe("large")["stages"]
    return [worker["sharedMemory"] for stage in stages for worker in stage["workers"] if "sharedMemory" in worker]


def segments(server: RunningServer) -> int:
    """Segments that the server has open."""
    return sum("memfd:msx-segment" in opened for _, opened in descriptors_of(server.process.pid))


@contextmanager
def at_once(server: RunningServer, *bodies: str) -> Iterator[list[Future[httpx.Response]]]:
    with ThreadPoolExecutor(len(bodies)) as threads:
        yield [threads.submit(server.predict, "large", body, timeout=60) for body in bodies]


@pytest.mark.parametrize("memory", ["sharedMemory: 64", "sharedMemory: 0"], ids=["shared memory", "frames"])
def test_16_mb_through_three_stages(memory: str, tmp_path: Path) -> None:
    sizes = [16 * MIB, 0, 5, 1 << 16, (1 << 16) + 1, 16 * MIB - 1, 3 * MIB]
    with served(tmp_path, CHAIN.format(memory)) as server:
        for size in sizes:
            assert server.predict("large", str(size), timeout=60).text == sum_of(size)
        with at_once(server, *map(str, sizes)) as replies:
            assert [reply.result().text for reply in replies] == [sum_of(size) for size in sizes]
        used = sum(one["segments"] for one in shared(server))
        assert bool(used) == ("0" not in memory.split())


def test_a_diamond_with_a_bound_of_1_never_waits_for_itself(tmp_path: Path) -> None:
    with served(tmp_path, DIAMOND) as server, at_once(server, *["1000000"] * 8) as replies:
        assert {reply.result().text for reply in replies} == {f"{sum_of(1_000_000)} {sum_of(1_000_000)}"}


@pytest.mark.parametrize("stage", ["make", "turn", "sum"])
def test_after_a_kill_in_any_stage_the_others_go_on(stage: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with served(tmp_path, CHAIN.format("")) as server:
        with at_once(server, f"1000000 {stage}:{gate}", *["2000000"] * 3) as replies:
            wait_until(Path(f"{gate}.begun").exists, "the stage has begun")
            os.kill(begun(gate), signal.SIGKILL)
            texts = [reply.result().text for reply in replies]
            gate.touch()
        assert "was ended by signal 9" in texts[0]
        wait_until(lambda: all(one["state"] == "READY" for one in server.describe("large")["stages"]), "a new worker")
        assert server.predict("large", "1000000", timeout=60).text == sum_of(1_000_000)


WIDE = """
responseTimeout: 20
stages:
  make: {handler: "large_values.py:Make", device: none, workers: 2}
  turn: {handler: "large_values.py:Turn", device: none, workers: 3}
  sum: {handler: "large_values.py:Sum", device: none, workers: 2}
"""
FEW_DESCRIPTORS = 256
"""32 of them are for segments: those who may write get 16, 8, 4, 4 and none."""


def test_more_workers_than_the_server_has_descriptors_for(tmp_path: Path) -> None:
    """Each of them reads what the stage before has written, and one sends its values in frames."""
    with served(tmp_path, WIDE, FEW_DESCRIPTORS) as server:
        assert len(shared(server)) == 7
        for stage, workers in (("turn", 3), ("sum", 2)):
            gates = [tmp_path / f"{stage}{number}" for number in range(workers)]
            with at_once(server, *[f"1000000 {stage}:{gate}" for gate in gates]) as replies:
                for gate, reply in zip(gates, replies, strict=True):
                    wait_until(lambda: Path(f"{gate}.begun").exists() or reply.done(), "each worker has a request")  # noqa: B023
                assert not any(reply.done() for reply in replies)
                assert len({begun(gate) for gate in gates}) == workers
                for gate in gates:
                    gate.touch()
                assert [reply.result().text for reply in replies] == [sum_of(1_000_000)] * workers
        lines = [line for line in server.log.read_text().splitlines() if "segments of shared memory, not 32" in line]
        assert sorted(re.findall(r"may have (\d+) segments", "\n".join(lines)), key=int) == ["0", "4", "4", "8", "16"]
        assert [line for line in lines if "may have 0 segments" in line and "limit of open files (ulimit -n)" in line]


def begun(gate: Path) -> int:
    """The worker that waits."""
    return int(Path(f"{gate}.begun").read_text())


@pytest.mark.mindspore  # NumPy comes with it
def test_an_array_that_is_kept_is_not_overwritten_and_its_worker_is_ended_at_last(tmp_path: Path) -> None:
    config = """
    stages:
      make: {handler: "large_values.py:Arrays", device: none}
      turn: {handler: "large_values.py:Turned", device: none}
      keep: {handler: "large_values.py:Kept", device: none, responseTimeout: 2}
    """
    with served(tmp_path, config) as server:
        for _ in range(3):
            assert server.predict("large", "1000000").text == "False 8000000"
        make, turn, keep = shared(server)
        assert (make["segments"], turn["lent"], keep["reads"]) == (1, 3, 3)
        wait_until(lambda: "The worker kept an input" in server.log.read_text(), "the worker is ended")
