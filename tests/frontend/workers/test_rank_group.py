"""The processes of one group, real ones: which ranks are connected, and that none is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from msx_frontend.workers.launcher import ExitStatus
from msx_frontend.workers.local import LocalLauncher
from msx_frontend.workers.rank_group import RankGroup
from msx_protocol import (
    CompleteReplies,
    Drain,
    Loaded,
    LoadFailed,
    LoadProgress,
    MetricSample,
    Ping,
    Pong,
    Predict,
    ToFrontend,
    encode_frame,
)
from tests.backend.harness import request
from tests.descriptors import open_descriptors
from tests.frontend.workers.handlers import ranks_of, spec_of
from tests.loops import run, until
from tests.processes import children_of

ECHO = """
def handle(data, context):
    return [f"{context.rank} of {context.world_size}"]
"""


class Events:
    def __init__(self) -> None:
        self.ranks: RankGroup
        self.messages: list[tuple[int, ToFrontend]] = []
        self.pongs: list[int] = []
        self.exits: dict[int, int] = {}
        self.bodies: list[bytes] = []

    def received(self, rank: int, message: ToFrontend, body: bytes) -> None:
        self.messages.append((rank, message))
        if isinstance(message, LoadProgress | Loaded):
            self.ranks[rank].loads(message)
        if isinstance(message, CompleteReplies):
            self.bodies.append(body)

    def ponged(self, rank: int, pong: Pong) -> None:
        self.pongs.append(rank)

    def printed(self, rank: int, sample: MetricSample) -> None: ...

    def exited(self, rank: int, status: ExitStatus) -> None:
        self.exits[rank] = status.code


@asynccontextmanager
async def group_of(
    folder: Path, code: str = ECHO, number: int = 3, **options: Any
) -> AsyncIterator[tuple[RankGroup, Events]]:
    events = Events()
    spec = ranks_of(spec_of(folder, code, **options), number)
    events.ranks = ranks = RankGroup(spec, events)
    launched = await LocalLauncher(folder / "work").launch(spec)
    try:
        ranks.begin(launched)
        await ranks.connect()
        yield ranks, events
    finally:
        ranks.kill()
        await ranks.gone()
        assert ranks.all_exited
        assert not any(psutil.pid_exists(rank.pid) for rank in launched)
        assert os.listdir(folder / "work") == []


def test_a_launcher_has_to_start_all_ranks(tmp_path: Path) -> None:
    async def test() -> None:
        group = RankGroup(ranks_of(spec_of(tmp_path, ECHO), 2), Events())
        with pytest.raises(ValueError, match="shorter than argument 1"):
            group.begin([])

    run(test())


def test_rank_0_leads_the_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(tmp_path) as (ranks, events):
            assert [one["state"] for one in described(ranks)] == ["LOADING"] * 3
            assert ranks.phase == "starting the process"
            assert ranks.slowest.startswith("rank 0 was starting the process, rank 1 was")
            ranks.load()
            await until(lambda: ranks.all_loaded)
            assert [one["state"] for one in described(ranks)] == ["READY"] * 3
            assert all("phase" not in one and one["memoryUsage"] > 1 << 20 for one in described(ranks))
            assert (ranks.phase, ranks.slowest) == ("", "all ranks were warming up")
            head, body = request(1, b"x")
            ranks.leader.data.write(encode_frame(Predict([head]), body))
            await until(lambda: sum(type(message).__name__ == "CallDone" for _, message in events.messages) == 3)
            assert events.bodies == [b"0 of 3"]

    run(test())


def described(ranks: RankGroup) -> list[dict[str, Any]]:
    return [rank.describe() for rank in ranks]


def test_all_ranks_are_pinged(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(tmp_path) as (ranks, events):
            ranks.load()
            ranks.ping(encode_frame(Ping(1)))
            await until(lambda: sorted(events.pongs) == [0, 1, 2])

    run(test())


def test_drain_ends_all_with_0(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(tmp_path) as (ranks, events):
            ranks.load()
            await until(lambda: ranks.all_loaded)
            ranks.leader.data.write(encode_frame(Drain()))
            await until(lambda: ranks.all_exited)
            assert events.exits == {0: 0, 1: 0, 2: 0}
            assert [one["state"] for one in described(ranks)] == ["ENDED"] * 3

    run(test())


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_the_others_of_a_dead_rank_do_not_end_by_themselves(tmp_path: Path, victim: int) -> None:
    """So that the first end that is told is the cause."""

    async def test() -> None:
        async with group_of(tmp_path) as (ranks, events):
            ranks.load()
            await until(lambda: ranks.all_loaded)
            os.kill(ranks[victim].pid, signal.SIGKILL)
            await until(lambda: events.exits)
            head, body = request(1, b"x")
            ranks.leader.data.write(encode_frame(Predict([head]), body))
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
        async with group_of(tmp_path, code, 2) as (ranks, events):
            ranks.load()
            await until(lambda: any(isinstance(message, LoadFailed) for _, message in events.messages))
            failed = [(rank, message.message) for rank, message in events.messages if isinstance(message, LoadFailed)]
            assert failed == [(1, "OSError: no")]
            assert not ranks.all_loaded

    run(test())


def test_no_socket_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        before = open_descriptors()
        for number in (2, 3):
            async with group_of(tmp_path / str(number), number=number):
                pass
        await until(lambda: not open_descriptors() - before)

    for number in (2, 3):
        (tmp_path / str(number)).mkdir()
    run(test())


class Popen(subprocess.Popen[bytes]):
    """The third of them cannot be started."""

    started: list[int] = []

    def __init__(self, *args: Any, **options: Any) -> None:
        if len(self.started) == 2:
            raise OSError("no more processes")
        super().__init__(*args, **options)
        self.started.append(self.pid)


def test_those_that_were_started_end_when_the_next_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Popen, "started", [])
    spec = ranks_of(spec_of(tmp_path, ECHO), 3)

    async def test() -> None:
        files = open_descriptors()
        monkeypatch.setattr(subprocess, "Popen", Popen)
        with pytest.raises(OSError, match="no more processes"):
            await LocalLauncher(tmp_path / "work").launch(spec)
        assert len(Popen.started) == 2
        assert not any(map(psutil.pid_exists, Popen.started))
        assert os.listdir(tmp_path / "work") == []
        assert not open_descriptors() - files

    run(test())


def test_a_launch_that_is_cancelled_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cancel comes when the second of four processes is started."""
    spec = ranks_of(spec_of(tmp_path, ECHO), 4)
    start = subprocess.Popen

    async def test() -> None:
        loop, started = asyncio.get_running_loop(), []
        children = set(children_of(os.getpid()))

        def popen(*args: Any, **kwargs: Any) -> Any:
            started.append(start(*args, **kwargs))
            if len(started) == 2:
                loop.call_soon_threadsafe(launch.cancel)
            return started[-1]

        monkeypatch.setattr(subprocess, "Popen", popen)
        launch = asyncio.ensure_future(LocalLauncher(tmp_path / "work").launch(spec))
        with pytest.raises(asyncio.CancelledError):
            await launch
        assert not set(children_of(os.getpid())) - children
        assert os.listdir(tmp_path / "work") == []

    run(test())


def test_the_ranks_of_each_generation_meet_elsewhere(tmp_path: Path) -> None:
    code = "import os\ndef handle(data, context):\n    return [os.environ.get('MASTER_PORT', '')]\n"

    async def port(number: int, **options: Any) -> bytes:
        async with group_of(tmp_path, code, number, **options) as (ranks, events):
            ranks.load()
            await until(lambda: ranks.all_loaded)
            head, body = request(1, b"x")
            ranks.leader.data.write(encode_frame(Predict([head]), body))
            await until(lambda: events.bodies)
            return events.bodies[0]

    async def test() -> None:
        ports = [await port(2), await port(2)]
        assert len(set(ports)) == 2
        assert all(0 < int(port) < 1 << 16 for port in ports)
        assert await port(1) == b""
        assert await port(1, meets=True) != b"", "a group of one rank meets, too"

    run(test())


def test_who_no_longer_waits_for_the_end_does_not_hinder_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with group_of(tmp_path, number=1) as (ranks, events):
            first, second = (asyncio.create_task(ranks.gone()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            ranks.kill()
            await second
            assert 0 in events.exits

    asyncio.run(asyncio.wait_for(test(), 120))
