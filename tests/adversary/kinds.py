"""Kinds of attacks. Each is made on one connection, and returns what the server did wrong, or ""."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable

from tests.adversary.asks import Ask
from tests.adversary.bodies import wrong_bodies
from tests.adversary.rig import GUEST, LARGEST_REQUEST, Attack
from tests.adversary.wires import Answer, Http2, Wire, answer_to, whole
from tests.raw_grpc import framed

ENDS = 30.0
"""Seconds after which a client that goes on must have lost its connection, whose limits are two to five."""
LEAVES = 5.0
"""Seconds after which it leaves where no limit ends it."""
SLOWLY = 0.1
"""Seconds between two bytes."""
UNREAD, FLOODS, RESETS = 200, 5, 100
HALF = 10_000
"""Bytes; of a body that is not complete."""
REFUSED = ("7", "16")
"""Statuses of calls: PERMISSION_DENIED, UNAUTHENTICATED."""
BODIES, BODYLESS = 40, 4
"""The number of wrong bodies: of an attack; of one on a route that has none."""
Kind = Callable[[Attack], Awaitable[str]]


async def half_head(attack: Attack) -> str:
    async with attack.connected() as wire:
        head = whole(wire, attack.ask, attack.key)
        wire.client.send(head[: min(len(head) // 2, 40)])
        return await _ended(attack, wire)


async def half_body(attack: Attack) -> str:
    async with attack.connected() as wire:
        body = attack.ask.body or b"x"
        wire.client.send(wire.head(attack.ask, attack.key, len(body) * 2) + wire.data(body))
        return await _ended(attack, wire)


async def slow(attack: Attack) -> str:
    async with attack.connected() as wire:
        data = wire.head(attack.ask, attack.key, 10_000) + wire.data(b" " * 9_999)
        ended = asyncio.ensure_future(_ended(attack, wire))
        for byte in data:
            if ended.done():
                break
            with contextlib.suppress(ConnectionError):
                wire.client.send(bytes([byte]))
            await asyncio.sleep(SLOWLY)
        return await ended


async def unread(attack: Attack) -> str:
    """Over HTTP/2 the window for replies is closed, too."""
    async with attack.connected() as first:
        wire = Http2(first.client, window=0) if attack.wire is Http2 else first
        with contextlib.suppress(ConnectionError):
            for _ in range(UNREAD):
                wire.client.send(whole(wire, attack.ask, attack.key))
        await asyncio.sleep(1)
    return ""


async def declared_too_large(attack: Attack) -> str:
    async with attack.connected() as wire:
        wire.client.send(wire.head(attack.ask, attack.key, LARGEST_REQUEST * 2) + wire.data(b"x" * 1000))
        return await _ended(attack, wire)


async def grows_too_large(attack: Attack) -> str:
    """A body of unknown length that has no end."""
    async with attack.connected() as wire:
        reply = asyncio.ensure_future(wire.answer())
        wire.client.send(wire.head(attack.ask, attack.key, None))
        sent = 0
        with contextlib.suppress(ConnectionError):
            while not reply.done() and sent < LARGEST_REQUEST * 2:
                wire.client.send(wire.data(b"x" * (1 << 16)))
                sent += 1 << 16
                await asyncio.wait([asyncio.ensure_future(wire.client.sent()), reply], return_when="FIRST_COMPLETED")
        return _fault(attack, await reply)


async def huge_head(attack: Attack) -> str:
    async with attack.connected() as wire:
        return _fault(attack, await answer_to(wire, attack.ask, attack.key, {"x-large": "x" * (1 << 20)}))


async def many_headers(attack: Attack) -> str:
    async with attack.connected() as wire:
        headers = {f"x-{number}": "x" for number in range(1_000)}
        return _fault(attack, await answer_to(wire, attack.ask, attack.key, headers))


async def malformed(attack: Attack) -> str:
    """Some of the wrong bodies, others for each attack, on connections that go on while the server lets them."""
    known = list(wrong_bodies(attack.ask.body, attack.ask.schema or {}))
    left = random.Random(attack.name).sample(known, min(len(known), BODIES if attack.ask.body else BODYLESS))
    while left:
        async with attack.connected() as wire:
            while left:
                body, headers = left.pop()
                answer = await answer_to(wire, attack.ask._replace(body=body), attack.key, headers)
                if fault := _fault(attack, answer):
                    return f"{fault} to {body[:200]!r} {headers}"
                if not answer.whole or answer.status >= 400:
                    break
    return ""


async def flood(attack: Attack) -> str:
    """Requests without a key."""
    for _ in range(FLOODS):
        async with attack.connected() as wire:
            with contextlib.suppress(ConnectionError):
                wire.client.send(b"".join(whole(wire, attack.ask, "") for _ in range(10)))
                await wire.client.sent()
            answer = await wire.answer()
            if attack.key and answer.accepted:
                return f"it was answered without a key: {answer}"
    return ""


async def reset_rapidly(attack: Attack) -> str:
    """Over HTTP/2: requests with a key that the client resets at once (CVE-2023-44487), then one that it does not."""
    async with attack.connected() as wire:
        if not isinstance(wire, Http2):
            return ""
        wire.client.send(b"".join(wire.head(attack.ask, attack.key, None) + wire.reset() for _ in range(RESETS)))
        return _fault(attack, await answer_to(wire, attack.ask, attack.key))


async def keyless(attack: Attack) -> str:
    """Half a body without a key, which is refused before the other half comes, where a key is needed."""
    if not attack.key:
        return ""
    async with attack.connected() as wire:
        wire.client.send(wire.head(attack.ask, "", HALF * 2) + wire.data(_begun(attack.ask)))
        answer = await wire.answer()
        refused = 400 <= answer.status != 408 or answer.grpc in REFUSED
        return "" if refused else f"half a body without a key was answered with {answer}"


def _begun(ask: Ask) -> bytes:
    """A body, or a message, of which as much is missing."""
    return (framed(bytes(HALF * 2)) if ask.grpc else bytes(HALF * 2))[:HALF]


KINDS: dict[str, tuple[Kind, ...]] = {
    "half": (half_head, half_body),
    "slow": (slow,),
    "unread": (unread,),
    "oversized": (declared_too_large, grows_too_large, huge_head, many_headers),
    "malformed": (malformed,),
    "floods": (flood, reset_rapidly),
    "keyless": (keyless,),
}


async def _ended(attack: Attack, wire: Wire) -> str:
    """By a reply, or by the end of the connection."""
    if attack.door.library:
        await asyncio.sleep(LEAVES)
        return ""
    begun = time.monotonic()
    answer = await wire.answer()
    took = time.monotonic() - begun
    return f"it went on for {took:.0f} s" if took > ENDS else _fault(attack, answer)


def _fault(attack: Attack, answer: Answer) -> str:
    """Requests of models' clients are no fault of the server or a worker. Models that others start and stop meanwhile
    may be one for a call of the management; bugs are looked for in the log."""
    failed = attack.ask.key != "management" and (answer.status == 500 or (answer.status, answer.grpc) == (200, "2"))
    return f"it was answered with {answer}" if failed else ""


# -- withdrawn --


class Withdrawn:
    """A client whose key is withdrawn between two requests of one connection, or two messages of one call."""

    def __init__(self, attack: Attack) -> None:
        self._attack = attack._replace(key=GUEST)

    async def begin(self) -> str:
        self._wire = await self._attack.door.connect(self._attack.wire)
        if self._attack.ask.streams:
            self._send(self._wire.head(self._attack.ask, GUEST, None))
            return ""
        self._first = await answer_to(self._wire, self._attack.ask, GUEST)
        return _fault(self._attack, self._first)

    def _send(self, data: bytes) -> None:
        self._wire.client.send(data + self._wire.data(self._attack.ask.body))

    async def go_on(self) -> str:
        """Nothing, where the first reply has no end."""
        if self._attack.ask.streams:
            self._send(b"")
            answer = await self._wire.answer()
        else:
            answer = await answer_to(self._wire, self._attack.ask, GUEST) if self._first.whole else Answer(0)
        self._wire.client.leave(reset=True)
        return f"it was answered with a key that was withdrawn: {answer}" if answer.accepted else ""
