"""Errors of an emulated operator."""

from __future__ import annotations

from typing import Any


class Refused(ValueError):
    """An NPU's kernel would fail here, or compute something else."""

    def __init__(self, operator: str, argument: str, came: Any, rule: str) -> None:
        super().__init__(f"{operator}: {argument} is {describe(came)}: {rule}")
        self.operator, self.argument = operator, argument


def describe(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(hasattr(it, "dtype") for it in value):
        return f"[{', '.join(describe(it) for it in value)}]"
    return repr(value)
