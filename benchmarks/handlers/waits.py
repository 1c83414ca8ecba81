"""One long synchronous call; writes when it began and when `context.cancelled` became true to the file `mark`."""

from __future__ import annotations

import time
from typing import Any

from msx_sdk import Context


def handle(data: list[dict[str, Any]], context: Context) -> list[str]:
    order = data[0]["body"]
    deadline = time.monotonic() + order["seconds"]
    with open(order["mark"], "a", buffering=1) as marks:
        marks.write(f"begin {time.monotonic()}\n")
        while not context.cancelled(0) and time.monotonic() < deadline:
            time.sleep(0.0005)
        marks.write(f"end {time.monotonic()}\n")
    return ["done"]
