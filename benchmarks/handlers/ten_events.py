"""Streams ten events, whatever the request is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msx_sdk import Context


def handle(data: list[dict[str, Any]], context: Context) -> Iterator[list[str]]:
    for number in range(10):
        yield [f"data: {number}\n\n"] * len(data)
