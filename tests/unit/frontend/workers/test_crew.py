"""The processes of one group, real ones: who is connected to whom, and that none is left."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from msx_frontend.workers import rank as rank_module
from msx_frontend.workers.crew import Crew, RankSpec
from msx_protocol import Answers, Drain, LoadFailed, MetricSample, Ping, Pong, Predict, ToFrontend, encode_frame
from tests.unit.backend.harness import request
from tests.unit.frontend.jobs import run
from tests.unit.frontend.workers.handlers import model_of

ECHO = """
def handle(data, context):
    return [f"{context.rank} of {context.world_size}"]
"""


class Events:
    def __init__(self) -> None:
        self.messages: list[tuple[int, ToFrontend]] = []
        self.pongs: list[int] = []
        self.exits: dict[int, int] = {}
        self.bodies: list[bytes] = []

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None:
        self.messages.append((rank, message))
        if isinstance(message, Answers):
            self.bodies.append(body)

    def ponged(self, rank: int, pong: Pong) -> None:
        self.pongs.append(rank)

    def printed(self, rank: int, sample: MetricSample) -> None: ...

    def exited(self, rank: int, code: int) -> None:
        self.exits[rank] = code


def specs_of(folder: Path, code: str, number: int) -> tuple[RankSpec, ...]:
    load = model_of(folder, code)
    return tuple(
        RankSpec(
            msgspec.structs.replace(load, rank=rank, local_rank=rank, world_size=number, input_ranks=number),
            dict(os.environ),
            folder / "work" / f"r{rank}",
        )
        for rank in range(number)
    )


@asynccontextmanager
async def crew_of(folder: Path, code: str = ECHO, number: int = 3) -> AsyncIterator[tuple[Crew, Events]]:
    events = Events()
    crew = Crew(specs_of(folder, code, number), events)
    try:
        await crew.spawn()
        yield crew, events
    finally:
        crew.kill()
        await crew.gone()
        assert crew.all_exited
        assert not any(psutil.pid_exists(member.process.pid) for member in crew.members)
        assert os.listdir(folder / "work") == []


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


def test_rank_0_leads_the_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with crew_of(tmp_path) as (crew, events):
            assert [one["state"] for one in described(crew)] == ["LOADING"] * 3
            assert crew.phase == "starting the process"
            assert crew.slowest.startswith("rank 0 was starting the process, rank 1 was")
            crew.load()
            await until(lambda: crew.all_loaded)
            assert [one["state"] for one in described(crew)] == ["READY"] * 3
            assert all("phase" not in one and one["memoryUsage"] > 1 << 20 for one in described(crew))
            assert (crew.phase, crew.slowest) == ("", "all ranks were warming up")
            head, body = request(1, b"x")
            crew.send(encode_frame(Predict([head]), body))
            await until(lambda: sum(type(message).__name__ == "CallDone" for _, message in events.messages) == 3)
            assert events.bodies == [b"0 of 3"]

    run(test())


def described(crew: Crew) -> list[dict[str, Any]]:
    return [member.describe() for member in crew.members]


def test_all_ranks_are_pinged(tmp_path: Path) -> None:
    async def test() -> None:
        async with crew_of(tmp_path) as (crew, events):
            crew.load()
            crew.ping(encode_frame(Ping(1)))
            await until(lambda: sorted(events.pongs) == [0, 1, 2])

    run(test())


def test_drain_ends_all_with_0(tmp_path: Path) -> None:
    async def test() -> None:
        async with crew_of(tmp_path) as (crew, events):
            crew.load()
            await until(lambda: crew.all_loaded)
            crew.send(encode_frame(Drain()))
            await until(lambda: crew.all_exited)
            assert events.exits == {0: 0, 1: 0, 2: 0}
            assert [one["state"] for one in described(crew)] == ["ENDED"] * 3

    run(test())


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_the_others_of_a_dead_rank_do_not_end_by_themselves(tmp_path: Path, victim: int) -> None:
    """So that the first end that is told is the cause."""

    async def test() -> None:
        async with crew_of(tmp_path) as (crew, events):
            crew.load()
            await until(lambda: crew.all_loaded)
            os.kill(crew.members[victim].process.pid, signal.SIGKILL)
            await until(lambda: events.exits)
            head, body = request(1, b"x")
            crew.send(encode_frame(Predict([head]), body))
            await asyncio.sleep(0.3)
            assert events.exits == {victim: -signal.SIGKILL}
            assert events.bodies == []

    run(test())


def test_a_rank_that_cannot_load(tmp_path: Path) -> None:
    code = (
        "class H:\n    def initialize(self, context):\n        if context.rank == 1:\n            raise OSError('no')\n"
    )
    code += "    def handle(self, data, context):\n        return data\n"

    async def test() -> None:
        async with crew_of(tmp_path, code, 2) as (crew, events):
            crew.load()
            await until(lambda: any(isinstance(message, LoadFailed) for _, message in events.messages))
            failed = [(rank, message.message) for rank, message in events.messages if isinstance(message, LoadFailed)]
            assert failed == [(1, "OSError: no")]
            assert not crew.all_loaded

    run(test())


def test_no_socket_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        before = len(os.listdir("/proc/self/fd"))
        for number in (2, 3):
            async with crew_of(tmp_path / str(number), number=number):
                pass
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before)

    for number in (2, 3):
        (tmp_path / str(number)).mkdir()
    run(test())


def test_those_that_were_started_can_be_killed_when_the_next_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, started = rank_module._popen, list[int]()

    def popen(*args: Any) -> Any:
        if len(started) == 2:
            raise OSError("no more processes")
        process = start(*args)
        started.append(process.pid)
        return process

    monkeypatch.setattr(rank_module, "_popen", popen)

    async def test() -> None:
        crew = Crew(specs_of(tmp_path, ECHO, 3), Events())
        with pytest.raises(OSError, match="no more processes"):
            await crew.spawn()
        crew.kill()
        await crew.gone()
        assert not any(map(psutil.pid_exists, started))
        assert os.listdir(tmp_path / "work") == []

    run(test())
