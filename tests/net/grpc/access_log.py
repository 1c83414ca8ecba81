"""An access log that a test reads."""

from __future__ import annotations

import asyncio

from msx_net.grpc.context import Call


class AccessLog:
    def __init__(self) -> None:
        self.lines: asyncio.Queue[tuple[Call, int]] = asyncio.Queue()

    def write(self, call: Call, status: int) -> None:
        self.lines.put_nowait((call, status))
