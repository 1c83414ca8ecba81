"""Answers each request with one number, in the shape that its protocol asks for."""

from __future__ import annotations

from typing import Any

from msx_sdk import Context


def handle(data: list[dict[str, Any]], context: Context) -> list[Any]:
    return [[1.0] if isinstance(row.get("body"), dict) and "inputs" in row["body"] else "1" for row in data]
