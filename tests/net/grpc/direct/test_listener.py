"""A port of gRPC: what its client may send behind an answer that came before the end of its request."""

from __future__ import annotations

import asyncio

import pytest

from msx_net.connections.limits import ConnectionLimits
from msx_net.grpc.admission import Admission
from msx_net.grpc.direct.listener import DirectListener
from msx_net.grpc.listen import GrpcListen, GrpcServed
from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.header_blocks import encode_headers
from tests.loops import run
from tests.net.http2.peer import Frame

DROPPED = 1000
"""Bytes."""
GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"a")]


async def heard_behind(*sent: bytes) -> list[Frame]:
    """Return a port's reply to a request without an end that is no call, and to `sent`; up to the answer of a PING."""
    limits = ConnectionLimits(max_refused_body_size=DROPPED)
    listener = DirectListener(GrpcListen("g", "127.0.0.1", 0, 100, 100), GrpcServed([], Admission(None), limits=limits))
    await listener.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.bound_port)
    writer.write(frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0))
    writer.write(frames.header_frames(1, encode_headers(GET), end=False, max_size=1 << 14))
    writer.write(b"".join(sent) + frames.frame(frames.PING, 0, 0, b"the end."))
    heard: list[Frame] = []
    try:
        while not heard or heard[-1].kind not in (frames.PING, frames.GOAWAY):
            high, low, kind, flags, stream_id = frames.HEAD.unpack(await reader.readexactly(frames.HEAD_SIZE))
            heard.append(Frame(kind, flags, stream_id, await reader.readexactly(high << 8 | low)))
    finally:
        writer.close()
        await listener.stop(0)
    return heard


def data(size: int, flags: int = 0) -> bytes:
    return frames.frame(frames.DATA, flags, 1, bytes(size))


@pytest.mark.parametrize(
    ("sent", "resets", "last"),
    [
        ((data(DROPPED - 1),), [], frames.PING),
        ((data(DROPPED - 1, frames.END_STREAM),), [], frames.PING),
        ((data(DROPPED), data(10), data(10)), [ErrorCode.NO_ERROR], frames.PING),
        ((data(1, frames.END_STREAM), data(1)), [], frames.GOAWAY),
        ((frames.frame(frames.DATA, frames.PADDED, 1, b"\x05"),), [], frames.GOAWAY),
    ],
    ids=["the client goes on", "it ends its request", "it sends too much", "it goes on behind its end", "bad padding"],
)
def test_what_comes_behind_a_refusal(sent: tuple[bytes, ...], resets: list[ErrorCode], last: int) -> None:
    async def test() -> None:
        heard = await heard_behind(*sent)
        answer = [frame for frame in heard if frame.kind in (frames.HEADERS, frames.DATA)]
        assert [frame.kind for frame in answer] == [frames.HEADERS, frames.DATA]
        assert answer[-1].flags & frames.END_STREAM
        assert b"speaks gRPC" in answer[-1].payload
        assert [frame.number for frame in heard if frame.kind == frames.RST_STREAM] == resets
        assert heard[-1].kind == last

    run(test())
