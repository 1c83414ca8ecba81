"""The streams of a server are looked at together, and nothing runs while none is open."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count

from msx_net.heartbeats import AT_ONCE, OFF, StreamHeartbeats
from tests.loops import run


def test_a_silent_stream_beats_again_and_again() -> None:
    async def test() -> None:
        heartbeats, beats, enough = StreamHeartbeats(0.01), list[int](), asyncio.Event()

        def beat() -> None:
            beats.append(len(beats))
            if len(beats) == 3:
                enough.set()

        heartbeat = heartbeats.open(beat)
        await enough.wait()
        heartbeat.close()

    run(test())


def test_one_that_cannot_beat_does_not_keep_the_others_from_it() -> None:
    async def test() -> None:
        heartbeats, beat = StreamHeartbeats(0.01), asyncio.Event()
        broken, other = heartbeats.open(lambda: 1 / 0), heartbeats.open(beat.set)  # type: ignore[arg-type]
        await beat.wait()
        broken.close()
        other.close()

    run(test())


def test_many_that_are_silent_leave_turns_to_others() -> None:
    async def test() -> None:
        heartbeats, beats, turn, loop = StreamHeartbeats(0.01), Counter[int](), count(), asyncio.get_running_loop()
        now = next(turn)

        def tick() -> None:
            nonlocal now
            now = next(turn)
            loop.call_soon(tick)

        loop.call_soon(tick)
        opened = [heartbeats.open(lambda: beats.update([now])) for _ in range(250)]
        while beats.total() < len(opened):
            await asyncio.sleep(0)
        assert max(beats.values()) <= AT_ONCE
        for one in opened:
            one.close()

    run(test())


def test_off_no_stream_is_looked_at() -> None:
    async def test() -> None:
        OFF.open(lambda: None)
        assert list(OFF._all()) == []

    run(test())
