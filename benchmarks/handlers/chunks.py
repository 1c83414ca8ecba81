"""Streams as many events as were asked for, one of each request of the batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msx_sdk import Context

EVENT = "data: #23456789abcdef0\n\n"
"""benchmarks/load/streams.py counts by the mark in it."""


def handle(data: list[dict[str, Any]], context: Context) -> Iterator[list[str | None]]:
    orders = [row["body"]["chunks"] for row in data]
    for idx in range(len(orders)):
        context.set_response_content_type(idx, "text/event-stream")
    for number in range(max(orders)):
        yield [EVENT if number < order else None for order in orders]
