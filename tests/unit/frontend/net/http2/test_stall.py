"""With a clock of the test's own."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from msx_frontend.net.http2.stall import StallWatch
from msx_frontend.net.http2.stream import Stream
from tests.unit.frontend.net.http2.peer import in_loop


class Clock:
    """The loop as far as the watch knows it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, do: Any) -> asyncio.TimerHandle:
        self.timers.append((self.now + delay, do))
        return cast(asyncio.TimerHandle, self)

    def cancel(self) -> None:
        self.timers.clear()

    def pass_to(self, until: float) -> None:
        while self.timers and min(due for due, _ in self.timers) <= until:
            timer = min(self.timers, key=lambda timer: timer[0])
            self.timers.remove(timer)
            self.now = timer[0]
            timer[1]()
        self.now = until


class Bench:
    def __init__(self) -> None:
        self.stalled: list[Stream | None] = []
        self.unsent = 0
        self.watch = StallWatch(10, lambda: self.unsent, self.stalled.append)
        self.clock = Clock()
        self.watch._loop = cast(asyncio.AbstractEventLoop, self.clock)


ONE, OTHER = cast(Stream, object()), cast(Stream, object())


@in_loop
async def test_a_stream_that_sends_nothing() -> None:
    bench = Bench()
    bench.watch.moved(ONE)
    bench.clock.pass_to(9)
    bench.watch.moved(OTHER)
    bench.clock.pass_to(9.9)
    assert bench.stalled == []
    bench.clock.pass_to(13)
    assert bench.stalled == [ONE]
    bench.watch.moved(OTHER)
    bench.clock.pass_to(22)
    assert bench.stalled == [ONE]
    bench.watch.done(OTHER)
    bench.clock.pass_to(100)
    assert bench.stalled == [ONE]
    assert not bench.clock.timers, "nothing is looked at while nothing waits"


@in_loop
async def test_a_transport_that_takes_nothing() -> None:
    bench = Bench()
    bench.unsent = 100
    bench.watch.moved(ONE)
    bench.watch.paused()
    bench.clock.pass_to(8)
    bench.unsent = 90
    bench.clock.pass_to(17)
    assert bench.stalled == [], "it took ten bytes, and no stream is to blame"
    bench.clock.pass_to(30)
    assert bench.stalled[0] is None


@in_loop
async def test_streams_have_their_time_after_a_pause() -> None:
    bench = Bench()
    bench.watch.moved(ONE)
    bench.watch.paused()
    bench.clock.pass_to(9)
    bench.watch.resumed()
    bench.clock.pass_to(18)
    assert bench.stalled == []
    bench.clock.pass_to(30)
    assert bench.stalled == [ONE]


@in_loop
async def test_it_ends_with_the_connection() -> None:
    bench = Bench()
    bench.watch.moved(ONE)
    bench.watch.stop()
    assert not bench.clock.timers
