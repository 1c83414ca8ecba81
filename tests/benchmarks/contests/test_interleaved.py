"""Two servers that have load in turns of a tenth of a second."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from benchmarks.contests import interleaved
from benchmarks.contests.contest import Contestant
from benchmarks.contests.interleaved import play_interleaved
from benchmarks.contests.rounds import paired, play_round
from benchmarks.load.client import Address
from benchmarks.load.result import Result
from benchmarks.load.started import StartedLoad
from tests.benchmarks.contestants import contestant
from tests.processes import alive

LOAD = """
import sys, time
end, number = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    number += 1
    time.sleep(0.001)
print(number)
"""


class Counts:
    """A load without a server: the rounds of a loop are its requests."""

    def __init__(self) -> None:
        self.started: list[psutil.Process] = []

    def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
        return self.start(address, path, connections=connections, seconds=seconds).result()

    def start(self, address: Address, path: str, *, connections: int, seconds: float) -> StartedLoad:
        command = [sys.executable, "-c", LOAD, str(seconds)]
        load = StartedLoad(command, seconds, lambda output, _: Result(int(output), round(seconds * 1e6), 1, 1, 0))
        self.started.append(psutil.Process(load.process.pid))
        return load


@pytest.fixture
def pair() -> Iterator[list[Contestant]]:
    servers = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    yield [Contestant(name, Address("127.0.0.1", 1), "/", one.pid) for name, one in zip("ab", servers, strict=True)]
    for server in servers:
        server.communicate(b"\n")


def test_both_run_for_their_slices_and_one_at_a_time(pair: list[Contestant], monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    let_run = interleaved.let_run

    def watched(load: StartedLoad) -> float:
        ran.append(load.process.pid)
        return let_run(load)

    monkeypatch.setattr(interleaved, "let_run", watched)
    load = Counts()
    play_interleaved(pair, [load, load], 32, 1.0)
    first, second = (process.pid for process in load.started)
    assert ran == [first, second] * 10
    assert [len(one.turns[32]) for one in pair] == [1, 1]
    assert all(one.turns[32][0].result.requests > 0 for one in pair)
    assert not alive(load.started)


def test_servers_and_this_process_have_all_cores_again(pair: list[Contestant]) -> None:
    cores = os.sched_getaffinity(0)
    with interleaved.cores_apart([one.family() for one in pair]):
        assert len(cores) < 2 or os.sched_getaffinity(0) != cores
    assert os.sched_getaffinity(0) == cores
    assert all(set(psutil.Process(one.pid).cpu_affinity()) == cores for one in pair)


def test_a_load_that_fails_leaves_no_process(pair: list[Contestant], monkeypatch: pytest.MonkeyPatch) -> None:
    load = Counts()

    def fails(load: StartedLoad) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(interleaved, "let_run", fails)
    with pytest.raises(KeyboardInterrupt):
        play_interleaved(pair, [load, load], 32, 1.0)
    psutil.wait_procs(load.started, 30)
    assert not alive(load.started)


def test_a_server_shares_its_turn_with_the_one_of_another_checkout() -> None:
    field = [contestant(name) for name in ("msx, before", "mosec", "msx, tokens on", "msx", "msx, tokens on, before")]
    pairs, alone = paired(field)
    assert [[one.name for one in pair] for pair in pairs] == [
        ["msx, tokens on", "msx, tokens on, before"],
        ["msx, before", "msx"],
    ]
    assert [one.name for one in alone] == ["mosec"]


def test_a_load_without_a_program_takes_short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    class InProcess:
        def run(self, address: Address, path: str, *, connections: int, seconds: float) -> Result:
            return Result(1, 500_000, 1, 1, 0)

    field = [Contestant(name, Address("127.0.0.1", 1), "/", os.getpid()) for name in ("msx", "msx, before")]
    monkeypatch.setattr(Contestant, "processor", lambda self: {1: 0.0})
    play_round(lambda _: InProcess(), field, [1, 2], 1)
    assert [[*one.turns] for one in field] == [[1, 2], [1, 2]]
    assert field[0].turns[1][0].result == Result(2, 1_000_000, 1, 1, 0)
