"""Streams a token every `pause` seconds, and writes the instant at which each was made to the file `mark`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from msx_sdk import Context


def handle(data: list[dict[str, Any]], context: Context) -> Iterator[list[str]]:
    order = data[0]["body"]
    with open(order["mark"], "a", buffering=1) as marks:
        try:
            for number in range(order["count"]):
                time.sleep(order["pause"])
                marks.write(f"token {time.monotonic()}\n")
                yield [f"{number}\n"]
        finally:
            marks.write(f"end {time.monotonic()}\n")
