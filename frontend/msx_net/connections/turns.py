"""Turns of the loop: a connection that has much to read goes on when others have had theirs."""

import asyncio
from collections.abc import Callable

TURN = 0.00025
"""Seconds that one connection reads without a pause: about as long as a probe takes on a server that does nothing
else. Far fewer than 64 KiB of chunk sizes, heads or small frames are read in it."""


def after_others(loop: asyncio.AbstractEventLoop, go_on: Callable[[], None]) -> None:
    """Call `go_on` in the turn after the next one: in the next one others read, and the tasks that they began run."""
    loop.call_soon(loop.call_soon, go_on)


async def let_others() -> None:
    """The same for a task."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
