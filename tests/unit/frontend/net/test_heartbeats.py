"""The streams of a server are looked at together, and nothing runs while none is open."""

from __future__ import annotations

import asyncio

from msx_frontend.net.heartbeats import OFF, StreamHeartbeats
from tests.unit.frontend.jobs import run


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


def test_off_no_stream_is_looked_at() -> None:
    async def test() -> None:
        OFF.open(lambda: None)
        assert list(OFF._all()) == []

    run(test())
