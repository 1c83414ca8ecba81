"""Streams numbers with an async handler; writes each token's time and its end to the file `mark`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from msx_sdk import Context


async def handle(data: list[dict[str, Any]], context: Context) -> AsyncIterator[list[str]]:
    order = data[0]["body"]
    with open(order["mark"], "a", buffering=1) as marks:
        try:
            for number in range(order["count"]):
                await asyncio.sleep(order["pause"])
                marks.write(f"token {time.monotonic()}\n")
                yield [f"{number}\n"]
        finally:
            marks.write(f"end {time.monotonic()}\n")
