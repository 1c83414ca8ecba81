"""Answers each request with its own bytes."""

from __future__ import annotations

from typing import Any

from msx_sdk import Context


def handle(data: list[dict[str, Any]], context: Context) -> list[Any]:
    return [row["body"] for row in data]
