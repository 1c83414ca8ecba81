"""Beats, who is silent, and a server that had stood still itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from msx_frontend.workers import heartbeat as module
from msx_frontend.workers.heartbeat import Heartbeat
from msx_protocol import FrameReader, Ping
from msx_protocol.heartbeat import BEFORE
from tests.frames import fed
from tests.loops import run


class Bench:
    def __init__(self) -> None:
        self.pings: list[int] = []
        self.judged: list[float] = []
        self.beat = asyncio.Event()
        self.heartbeat = Heartbeat(3, self._pinged, self.judged.append)

    def _pinged(self, frame: bytes) -> None:
        ((ping, _),) = fed(FrameReader[Ping](Ping), frame)
        self.pings.append(ping.sequence)
        self.beat.set()

    async def next_beat(self) -> None:
        self.beat.clear()
        await self.beat.wait()


def on(test: Callable[[Bench], Coroutine[Any, Any, None]]) -> Bench:
    benches: list[Bench] = []

    async def call() -> None:
        benches.append(Bench())
        try:
            await test(benches[0])
        finally:
            benches[0].heartbeat.stop()

    run(call(), "uvloop")
    return benches[0]


def test_judges_between_two_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT", 0.01)

    async def test(bench: Bench) -> None:
        bench.heartbeat.start()
        await bench.next_beat()
        await bench.next_beat()

    bench = on(test)
    assert bench.pings == [1, 2, 3]
    assert len(bench.judged) == 2


def test_pings_of_ranks_that_are_taken_over_come_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first one the worker tells its gauges, which would come before the model is known to be loaded."""
    monkeypatch.setattr(module, "HEARTBEAT", 0.01)

    async def test(bench: Bench) -> None:
        bench.heartbeat.start(BEFORE)
        await bench.next_beat()
        bench.heartbeat.start()
        await bench.next_beat()

    assert on(test).pings == [0, 0, 1, 2]


def test_a_verdict_may_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT", 0.01)
    pings: list[bytes] = []

    async def test(bench: Bench) -> None:
        stopping = Heartbeat(1, pings.append, lambda now: stopping.stop())
        stopping.start()
        bench.heartbeat.start()
        for _ in range(3):
            await bench.next_beat()

    on(test)
    assert len(pings) == 1


def test_the_most_silent_rank() -> None:
    async def test(bench: Bench) -> None:
        bench.heartbeat.start()
        now = time.monotonic()
        assert bench.heartbeat.silent(now) is None
        bench.heartbeat.last_heard.update({0: now + 100, 1: now + 90, 2: now + 97})
        assert bench.heartbeat.silent(now + 94) is None
        assert bench.heartbeat.silent(now + 96) == 1

    on(test)


def test_nothing_is_judged_when_the_server_itself_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its timers run before it reads what the ranks have said meanwhile."""
    monkeypatch.setattr(module, "HEARTBEAT", 0.01)
    monkeypatch.setattr(module, "MISSED_HEARTBEAT", 0.2)

    async def test(bench: Bench) -> None:
        bench.heartbeat.start()
        time.sleep(0.3)  # the whole loop
        await bench.next_beat()
        assert bench.judged == []
        await bench.next_beat()
        assert len(bench.judged) == 1

    on(test)
