"""Attacks on a listener itself, which need no route: frames that make work, and handshakes that have no end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msx_net.http2.errors import ErrorCode
from tests.adversary.carrying import named
from tests.adversary.kinds import ENDS, LEAVES
from tests.adversary.rig import Door
from tests.adversary.wires import Http2
from tests.soak.client import RawClient
from tests.soak.floods import BEGIN, send_unread

AT_EACH = 1
"""Clients of one kind at each listener."""
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)
"""The begin of a ClientHello of 512 bytes (RFC 8446, 4.1.2)."""
HANDSHAKES = (b"", HELLO[:3], HELLO)
WENT_ON = f"it went on for {ENDS:g} s"
TOO_MANY = ErrorCode.ENHANCE_YOUR_CALM.to_bytes(4, "big")

Siege = Callable[[Door], Awaitable[str]]
"""Returns the fault, or ""."""


async def besiege(sieges: Iterable[Siege], doors: Iterable[Door]) -> list[str]:
    """All of them at once at every door; returns the faults."""
    tries = [named(door.name, siege(door)) for siege in sieges for door in doors for _ in range(AT_EACH)]
    return [fault for fault in await asyncio.gather(*tries) if fault]


def flood(data: bytes, *, refused: bool) -> tuple[Siege, Siege]:
    """Frames of a client that reads what is answered, and of one that does not. `refused`: the server ends the
    connection for it; others end as they are idle."""

    async def read(door: Door) -> str:
        client = (await door.connect(Http2)).client
        client.send(BEGIN + data)
        said = await _until_closed(door, client)
        if said is None:
            return WENT_ON
        return "" if door.library or not refused or TOO_MANY in said else f"it was not refused: {said[-200:]!r}"

    async def unread(door: Door) -> str:
        await send_unread((await door.connect(Http2)).client, BEGIN + data)
        return ""

    return read, unread


def half_handshake(begun: bytes) -> Siege:
    """On a listener without TLS it is no request either."""

    async def shake(door: Door) -> str:
        client = await RawClient.connect(door.address)
        client.send(begun)
        return WENT_ON if await _until_closed(door, client) is None else ""

    return shake


async def _until_closed(door: Door, client: RawClient) -> bytes | None:
    """All that the server says; None where it should have ended the connection, and has not."""
    try:
        return await asyncio.wait_for(client.until_closed(), LEAVES if door.library else ENDS)
    except asyncio.TimeoutError:
        return b"" if door.library else None
    finally:
        client.leave(reset=True)
