"""Answers each request with its own bytes, as a function that TorchServe calls."""

from __future__ import annotations

from typing import Any


def handle(data: list[dict[str, Any]] | None, context: Any) -> list[Any] | None:
    """TorchServe calls it without data when it loads the model."""
    return None if data is None else [row["body"] for row in data]
