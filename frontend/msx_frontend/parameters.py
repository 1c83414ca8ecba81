"""Parameters of management calls, as TorchServe reads them: from a query, a JSON body or a gRPC message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def integer(values: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """TorchServe's rule: what is no integer of 32 bits counts as not given."""
    try:
        value = int(values[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return default
    return value if -(1 << 31) <= value < 1 << 31 else default


def boolean(values: Mapping[str, Any], name: str, default: bool) -> bool:
    return str(values.get(name, default)).strip().lower() == "true"


def text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return None if value is None else str(value)
