"""An event loop for the coroutine of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

WATCHDOG = 120.0
"""Seconds after which a test that waits is lost; a table of hundreds of requests took 30 on a busy machine."""

T = TypeVar("T")


def run(test: Coroutine[Any, Any, T], loop: str = "asyncio") -> T:
    """Run a test's coroutine, on the loop of that name, for at most WATCHDOG seconds."""
    with_limit = asyncio.wait_for(test, WATCHDOG)
    return uvloop.run(with_limit) if loop == "uvloop" else asyncio.run(with_limit)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds; the watchdog of `run` ends it."""
    while not condition():
        await asyncio.sleep(0.001)
