"""With a clock of the test's own."""

from __future__ import annotations

import asyncio
from typing import cast

from msx_net.http2.stall import StallWatch
from msx_net.http2.stream import Stream
from tests.net.http2.peer import in_loop


class Clock:
    """The loop as far as the watch knows it."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now


class Bench:
    def __init__(self) -> None:
        self.stalled: list[Stream | None] = []
        self.unsent = 0
        self.watch = StallWatch(10, lambda: self.unsent, self.stalled.append)
        self.clock = Clock()
        self.watch._loop = cast(asyncio.AbstractEventLoop, self.clock)

    def pass_to(self, until: float) -> None:
        while self.clock.now < until:
            self.clock.now = min(self.clock.now + 1, until)
            self.watch.look(self.clock.now)


ONE, OTHER = cast(Stream, object()), cast(Stream, object())


@in_loop
async def test_a_stream_that_sends_nothing() -> None:
    bench = Bench()
    bench.watch.moved(ONE)
    bench.pass_to(9)
    bench.watch.moved(OTHER)
    bench.pass_to(9.9)
    assert bench.stalled == []
    bench.pass_to(13)
    assert bench.stalled == [ONE]
    bench.watch.moved(OTHER)
    bench.pass_to(22)
    assert bench.stalled == [ONE]
    bench.watch.done(OTHER)
    bench.pass_to(100)
    assert bench.stalled == [ONE]


@in_loop
async def test_a_transport_that_takes_nothing() -> None:
    bench = Bench()
    bench.unsent = 100
    bench.watch.moved(ONE)
    bench.watch.paused()
    bench.pass_to(8)
    bench.unsent = 90
    bench.pass_to(17)
    assert bench.stalled == [], "it took ten bytes, and no stream is to blame"
    bench.pass_to(30)
    assert bench.stalled[0] is None


@in_loop
async def test_streams_have_their_time_after_a_pause() -> None:
    bench = Bench()
    bench.watch.moved(ONE)
    bench.watch.paused()
    bench.pass_to(9)
    bench.watch.resumed()
    bench.pass_to(18)
    assert bench.stalled == []
    bench.pass_to(30)
    assert bench.stalled == [ONE]


@in_loop
async def test_time_in_which_the_server_was_held_up_does_not_count() -> None:
    for paused in (False, True):
        bench = Bench()
        bench.unsent = 5
        bench.watch.moved(ONE)
        if paused:
            bench.watch.paused()
        bench.clock.now = 100
        bench.watch.forgive(99, 100)
        bench.watch.look(100)
        assert bench.stalled == []
        bench.pass_to(109)
        assert bench.stalled == [None if paused else ONE]
