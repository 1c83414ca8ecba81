"""Two stages that overlap: one computes for every item, the other waits for every batch, as for an accelerator."""

from __future__ import annotations

import time
from typing import Any

from msx_sdk import Context, Handler

COMPUTED = 0.002
"""Seconds of processor time an item."""
WAITED = 0.020
"""Seconds a batch."""
REPORT = b"report"
"""The body of a request that is answered with the calls so far: begin, end and size of each."""


class Decode(Handler):
    def handle(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        return [self._decoded(bytes(row["body"])) for row in data]

    def _decoded(self, body: bytes) -> bytes:
        if body != REPORT:
            until = time.thread_time() + COMPUTED
            while time.thread_time() < until:
                pass
        return body


class Infer(Handler):
    def initialize(self, context: Context) -> None:
        self._calls: list[tuple[float, float, int]] = []

    def handle(self, data: list[dict[str, Any]], context: Context) -> list[Any]:
        if data[0]["body"] == REPORT:
            calls, self._calls = self._calls, []
            return [calls for _ in data]
        begun = time.monotonic()
        time.sleep(WAITED)
        self._calls.append((begun, time.monotonic(), len(data)))
        return [str(len(data)) for _ in data]
