"""Byte by byte: conversations in which bytes were changed, lost, repeated and mixed. No crash, no leak, no hang."""

from __future__ import annotations

import asyncio
import gc
import random
from typing import Any

import pytest

from msx_net.http2 import frames
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.errors import ErrorCode
from msx_net.http2.limits import Limits
from msx_net.http2.stream import Stream
from tests.conformance.http2.script import GET, POST, Case, settings
from tests.conformance.http2.test_h2spec import CASES
from tests.net.http2.peer import OK, STATUS, Owner, Peer

CONNECTIONS = 100_000
LIMITS = (Limits(), Limits(max_refused_body=1_000, idle_timeout=30, min_body_rate=0))
BATCH = 500
"""Connections between two looks at what is left of them."""


def said(case: Case) -> bytes:
    """Bytes of its client, whatever the answers."""
    steps = b"".join(step for step in case.steps if isinstance(step, bytes))
    return steps if case.silent else frames.PREFACE + settings() + steps


def long_conversation() -> bytes:
    """Many requests with what compression does to headers that come again."""
    encoder = Peer(silent=True).encoder
    parts = [frames.PREFACE, settings((4, 1_000)), frames.window_update(0, 1 << 20)]
    for number in range(1, 40, 2):
        fields = [*(POST if number % 3 else GET), (b"x-number", b"%d" % (number // 4)), (b"user-agent", b"fuzz/1.0")]
        parts.append(frames.header_frames(number, encoder.encode(fields), end=not number % 3, max_size=40))
        if number % 3:
            parts.append(frames.frame(frames.DATA, frames.PADDED, number, b"\x04" + b"a body" * 20 + bytes(4)))
            parts.append(frames.frame(frames.DATA, frames.END_STREAM, number, b"the end"))
        parts += [frames.window_update(number, 5_000), frames.frame(frames.PING, 0, 0, bytes(8))]
    return b"".join(parts)


class Fuzzed(Peer):
    """Answers each request, whole or by and by, or resets it."""

    def accept(self, *args: Any) -> Owner:
        owner = super().accept(*args)
        stream = owner.stream
        if stream.id % 5 == 0:
            stream.reset(ErrorCode.CANCEL)
        elif stream.id % 3 == 0:
            stream.send_whole(OK, bytes(100), STATUS)
        else:
            stream.send_headers(OK)
            stream.send_data(bytes(2_000), end=stream.id % 7 == 0)
        return owner


def mutated(data: bytes, corpus: list[bytes], by: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(by.choice((1, 1, 2, 4, 16))):
        at = by.randrange(len(changed) + 1)
        size = by.choice((1, 1, 2, 4, 9, 30))
        match by.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << by.randrange(8)
            case 1 if at < len(changed):
                changed[at] = by.choice((0, 1, 0x7F, 0x80, 0xFF, by.randrange(256)))
            case 2:
                del changed[at : at + size]
            case 3:
                changed[at:at] = by.randbytes(size)
            case 4:
                changed[at:at] = changed[at : at + size * 4]
            case 5:
                other = by.choice(corpus)
                start = by.randrange(len(other))
                changed[at:] = other[start:]
            case _:
                changed += by.choice(corpus)[len(frames.PREFACE) :]
    return bytes(changed)


async def one(data: bytes, by: random.Random) -> None:
    peer = Fuzzed(by.choice(LIMITS), silent=True)
    start, piece = 0, by.choice((7, 100, 1_000, 1 << 18))
    while start < len(data):
        size = by.randint(1, piece)
        peer.send(data[start : start + size])
        start += size
        match by.randrange(40):
            case 0:
                peer.protocol.pause_writing()
            case 1:
                peer.protocol.resume_writing()
            case 2:
                peer.look(by.choice((1, 20, 60)))
            case 3:
                peer.protocol.shutdown()
            case 4:
                await asyncio.sleep(0)
    await asyncio.sleep(0)
    peer.protocol.connection_lost(None)
    assert (peer.protocol.streams, peer.protocol.held) == (0, 0)
    for owner in peer.owners.values():
        assert len(owner.reasons) <= 1
        assert owner.stream.finished


def left() -> int:
    """By type: `isinstance` asks what a weak proxy of another test stands for, which may be gone."""
    gc.collect()
    return sum(issubclass(type(found), (Http2Protocol, Stream)) for found in gc.get_objects())


@pytest.mark.parametrize("connections", [BATCH, pytest.param(CONNECTIONS, marks=pytest.mark.long)])
def test_bytes_that_were_changed(connections: int) -> None:
    failures: list[dict[str, Any]] = []

    async def test() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        corpus = [said(case) for case in CASES] + [long_conversation()] * 20
        by, before = random.Random(9113), left()
        for number in range(connections):
            data = mutated(by.choice(corpus), corpus, by)
            try:
                await asyncio.wait_for(one(data, by), 60)
            except Exception as error:
                raise AssertionError(f"connection {number}: {data.hex()}") from error
            assert not failures, (data.hex(), failures)
            if number % BATCH == BATCH - 1:
                await asyncio.sleep(0)
                assert left() == before

    asyncio.run(test())
