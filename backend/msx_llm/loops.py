"""Calls from one event loop to another one."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def call_on(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: Any) -> None:
    """Calls it at once on the loop's own thread; from others in the loop's turn, or not at all once it is closed."""
    if is_running_here(loop):
        call(*args)
        return
    with suppress(RuntimeError):  # closed meanwhile
        loop.call_soon_threadsafe(call, *args)


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:  # the thread runs none
        return False
