"""Clients of HTTP/2 that make the server work and read nothing of what it answers."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

from hpack import Encoder

from msx_frontend.net.http2 import frames
from msx_frontend.net.http2.errors import ErrorCode
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


async def flood_settings(target: Target) -> None:
    await _flood(target, frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + (1 << 16).to_bytes(4, "big")) * FRAMES)


async def flood_pings(target: Target) -> None:
    await _flood(target, frames.frame(frames.PING, 0, 0, b"12345678") * FRAMES)


async def flood_windows(target: Target) -> None:
    await _flood(target, frames.window_update(0, 1) * FRAMES)


async def reset_rapidly(target: Target) -> None:
    """CVE-2023-44487."""
    block = Encoder().encode(_HEADERS)
    ids = range(1, 2 * STREAMS, 2)
    parts = [
        frames.header_frames(one, block, end=False, max_size=1 << 14) + frames.rst_stream(one, ErrorCode.CANCEL)
        for one in ids
    ]
    await _flood(target, b"".join(parts))


async def continue_for_ever(target: Target) -> None:
    """CVE-2024-27316."""
    head = frames.frame(frames.HEADERS, 0, 1, b"\x82")
    await _flood(target, head + frames.frame(frames.CONTINUATION, 0, 1, b"\x86" * 1000) * 1000)


async def _flood(target: Target, data: bytes) -> None:
    async with await RawClient.connect(random.choice([target.grpc, target.inference])) as client:
        with suppress(ConnectionError):
            client.send(frames.PREFACE + frames.frame(frames.SETTINGS, 0, 0))
            client.send(data)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(client.sent(), 5)
        client.leave(reset=True)


FLOODS: tuple[Visit, ...] = (flood_settings, flood_pings, flood_windows, reset_rapidly, continue_for_ever)
