"""Members of bytes in JSON: msgspec reads base64 in one line alone."""

import re
from typing import Any

import msgspec

from msx_core.base64_text import without_white_space
from msx_core.validation import wrong_value

MOST = 64
"""Places of a type whose base64 may have white space; all items of a list, and all values of a dict, are one place."""
_BASE64 = "Invalid base64 encoded string"
_STEP = re.compile(r"\.?([^.\[\]]+)|\[\d*\]")


def is_base64_fault(error: msgspec.ValidationError) -> bool:
    return str(error).startswith(_BASE64)


def compacted(value: Any, error: msgspec.ValidationError) -> Any:
    """Return a copy of `value` without the white space of the texts at the error's place."""
    path, _ = wrong_value(error)
    return _compacted(value, [step[1] for step in _STEP.finditer(path)])


def _compacted(value: Any, steps: list[str | None]) -> Any:
    """`steps` are names of members; None: every item, or every value."""
    if not steps:
        return without_white_space(value) if isinstance(value, str) else value
    first, rest = steps[0], steps[1:]
    if isinstance(value, list):
        return [_compacted(item, rest) for item in value]
    if isinstance(value, dict):
        return {name: _compacted(item, rest) if first in (None, name) else item for name, item in value.items()}
    return value
