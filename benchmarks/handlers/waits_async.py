"""One long await and no stream; writes when it began and when it was cancelled to the file `mark`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from msx_sdk import Context


async def handle(data: list[dict[str, Any]], context: Context) -> list[str]:
    order = data[0]["body"]
    with open(order["mark"], "a", buffering=1) as marks:
        marks.write(f"begin {time.monotonic()}\n")
        try:
            await asyncio.sleep(order["seconds"])
        finally:
            marks.write(f"end {time.monotonic()}\n")
    return ["done"]
