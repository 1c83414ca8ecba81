"""As chunks.py, with an async handler: all streams at once, each giving way to the others after every event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from msx_sdk import Context

EVENT = "data: #23456789abcdef0\n\n"


async def handle(data: list[dict[str, Any]], context: Context) -> AsyncIterator[list[str]]:
    context.set_response_content_type(0, "text/event-stream")
    for _ in range(data[0]["body"]["chunks"]):
        yield [EVENT]
        await asyncio.sleep(0)
