"""Known attacks on HTTP/2 servers: how much a client can make the server do before its connection ends.

What is counted is calls of functions, in Python and C, so that the speed of the machine does not matter.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from itertools import count, islice

import pytest

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.flood import Budget
from msx_net.http2.frames import frame, header_frames, rst_stream, window_update
from msx_net.http2.header_blocks import encode_headers
from tests.net.http2.peer import REQUEST, Owner, Peer, in_loop

MOST = 400_000
"""Calls: a third of a second on a slow machine."""

BLOCK = encode_headers(REQUEST)
END = frames.END_HEADERS | frames.END_STREAM
IDS = range(3, 1 << 30, 2)
LONG_HEADER = b"\x40\x01a\x7f\xbd\x1d" + b"v" * 3_900
"""A field of 3,900 bytes, for the table."""


class Victim(Peer):
    """Stream 1 waits for its body; the others are answered by nobody."""

    calls = 0

    def accept(self, *args: object) -> Owner:
        owner = super().accept(*args)  # type: ignore[arg-type]
        del self.owners[owner.stream.id]
        return owner

    async def suffer(self, attack: Iterator[bytes]) -> None:
        """Until the connection ends."""
        for part in attack:
            if self.transport.ended or self.transport.aborted:
                return
            sys.setprofile(self._count)
            try:
                self.send(part)
            finally:
                sys.setprofile(None)
            while self.transport.paused:
                await asyncio.sleep(0)

    def _count(self, _: object, event: str, __: object) -> None:
        self.calls += event in ("call", "c_call")


def headers(stream_id: int, block: bytes = BLOCK, flags: int = END) -> bytes:
    return frame(frames.HEADERS, flags, stream_id, block)


def opened(stream_id: int, fields: tuple[tuple[bytes, bytes], ...] = ()) -> bytes:
    return headers(stream_id, BLOCK + encode_headers(fields), frames.END_HEADERS)


def window(size: int) -> bytes:
    return b"\0\4" + size.to_bytes(4, "big")


def settings(payload: bytes = b"") -> bytes:
    return frame(frames.SETTINGS, 0, 0, payload)


def all_streams_change() -> Iterator[bytes]:
    """A window of other size for a thousand streams, again and again."""
    yield from (opened(number) for number in islice(IDS, 999))
    yield from (settings(window(size % 2) * 32) for size in count())


def long_header(field: bytes) -> Iterator[bytes]:
    yield headers(IDS[0], BLOCK + LONG_HEADER)
    yield from (headers(number, BLOCK + field) for number in IDS[1:])


ATTACKS: dict[str, Callable[[], Iterator[bytes]]] = {
    "CVE-2019-9512, PING": lambda: (frame(frames.PING, 0, 0, bytes(8)) for _ in count()),
    "CVE-2019-9513, PRIORITY": lambda: (
        frame(frames.PRIORITY, 0, 2 * number + 1, (1 << 31).to_bytes(4, "big") + b"\1") for number in count(1)
    ),
    "CVE-2019-9514, requests that have to be reset": lambda: (headers(number, BLOCK[1:]) for number in IDS),
    "CVE-2019-9515, SETTINGS": lambda: (settings() for _ in count()),
    "CVE-2019-9515, SETTINGS with 2,730 entries": lambda: (settings(window(1) * 2_730) for _ in count()),
    "CVE-2019-9515, SETTINGS with many streams": all_streams_change,
    "CVE-2019-9515, ACK of SETTINGS": lambda: (frame(frames.SETTINGS, frames.ACK, 0) for _ in count()),
    "CVE-2019-9516, headers without a name": lambda: (headers(number, BLOCK + b"\0\0\0") for number in IDS),
    "CVE-2019-9518, empty DATA": lambda: (frame(frames.DATA, 0, 1) for _ in count()),
    "CVE-2019-9518, DATA of padding": lambda: (frame(frames.DATA, 8, 1, b"\xff" + bytes(255)) for _ in count()),
    "CVE-2019-9518, empty CONTINUATION": lambda: (
        headers(3, b"", 0) if not number else frame(frames.CONTINUATION, 0, 3) for number in count()
    ),
    "CVE-2019-9518, PUSH_PROMISE": lambda: (frame(frames.PUSH_PROMISE, 0, 1, bytes(4)) for _ in count()),
    "CVE-2023-44487, rapid reset": lambda: (opened(number) + rst_stream(number, ErrorCode.CANCEL) for number in IDS),
    "CVE-2023-44487, more streams than announced": lambda: (opened(number) for number in IDS),
    "CVE-2024-27316, CONTINUATION": lambda: (
        headers(3, BLOCK, 0) if not number else frame(frames.CONTINUATION, 0, 3, b"\0\1a\1b" * 2_000)
        for number in count()
    ),
    "CVE-2025-8671, a window by 0": lambda: (opened(number) + window_update(number, 0) for number in IDS),
    "CVE-2025-8671, a window too large": lambda: (
        opened(number) + window_update(number, (1 << 31) - 1) for number in IDS
    ),
    "CVE-2025-8671, a body too long": lambda: (
        opened(number, ((b"content-length", b"1"),)) + frame(frames.DATA, 0, number, b"ab") for number in IDS
    ),
    "CVE-2025-8671, two HEADERS": lambda: (opened(number) + opened(number) for number in IDS),
    "unknown frames": lambda: (frame(0xBE, 0, 0) for _ in count()),
    "late DATA": lambda: (
        headers(3, BLOCK[1:]) if not number else frame(frames.DATA, 0, 3, b"a") for number in count()
    ),
    "HPACK: updates of the table": lambda: (
        header_frames(number, b"\x20" * 30_000 + BLOCK, end=True, max_size=16_384) for number in IDS
    ),
    "HPACK: a table that is emptied and filled": lambda: (
        header_frames(number, b"\x3f\xe1\x1f\x20" * 7_000 + BLOCK, end=True, max_size=16_384) for number in IDS
    ),
    "HPACK: a long field again and again (CVE-2016-6581)": lambda: long_header(b"\xbe" * 12_000),
    "HPACK: a list that is too long, but not twice": lambda: long_header(b"\xbe" * 7),
    "HPACK: a long number": lambda: (headers(number, BLOCK + b"\xff" * 16_000) for number in IDS),
}


@pytest.fixture(autouse=True)
def time_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets fill again with time, and a busy machine would let more in."""
    monkeypatch.setattr(Budget.__init__, "__defaults__", (lambda: 0.0,))


@pytest.mark.parametrize("name", ATTACKS)
@in_loop
async def test_an_attack_ends_its_connection(name: str) -> None:
    victim = Victim()
    victim.send(opened(1))
    await victim.suffer(ATTACKS[name]())
    assert victim.transport.ended
    assert victim.calls < MOST
    last = (await victim.received())[-1]
    assert last.kind == frames.GOAWAY


@in_loop
async def test_a_client_that_takes_an_answer_by_single_bytes() -> None:
    """CVE-2019-9511: windows of one byte."""
    victim = Peer()
    victim.send(settings(window(0)))
    victim.request(1).stream.send_data(bytes(1 << 20))
    for _ in range(20_000):
        if victim.transport.ended:
            break
        victim.send(window_update(1, 1))
    assert (await victim.goaway())[0] == ErrorCode.ENHANCE_YOUR_CALM


@in_loop
async def test_a_client_that_reads_nothing_of_large_answers() -> None:
    """CVE-2019-9517: all windows are open, and the socket takes nothing. The owners are told to wait."""
    victim = Peer()
    victim.send(settings(window((1 << 31) - 1)), window_update(0, (1 << 31) - 65_536))
    await victim.received()
    victim.protocol.pause_writing()
    for number in range(1, 201, 2):
        stream = victim.request(number).stream
        stream.send_data(bytes(1 << 20))
        assert stream.blocked
    assert not await victim.received()


@in_loop
async def test_acknowledgements_that_nobody_reads() -> None:
    victim = Victim()
    victim.protocol.pause_writing()
    await victim.suffer(frame(frames.PING, 0, 0, bytes(8)) for _ in range(2_000))
    assert victim.transport.aborted
    assert victim.calls < MOST / 10
