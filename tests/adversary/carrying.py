"""Attacks of one kind, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from tests.adversary.kinds import Kind
from tests.adversary.rig import Attack

AT_ONCE = 100


async def carry_out(kind: Kind, attacks: Sequence[Attack]) -> list[str]:
    """Returns the faults."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(attack: Attack) -> str:
        async with room:
            return await named(f"{kind.__name__}, {attack.name}", kind(attack))

    return [fault for fault in await asyncio.gather(*map(one, attacks)) if fault]


async def named(name: str, attack: Awaitable[str]) -> str:
    """The fault of an attack with its name, or "". A connection that the server has ended is none."""
    try:
        fault = await attack
    except asyncio.TimeoutError:  # from Python 3.11 on an OSError, too
        fault = "it was not answered"
    except (OSError, EOFError):
        fault = ""
    return f"{name}: {fault}" if fault else ""
