"""Faults of a body in words: the member's path, what was expected and what came."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from msx_core.failures import shortened
from msx_core.validation import wrong_value

MOST_SHOWN = 60
"""Characters of a value that came."""
MOST_FAULTS = 5
MOST_LISTED = 1000
MOST_TEXT = 400
"""Characters of what is said of one member."""

_MISSING = re.compile(r"object missing required field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def of_msgspec(error: msgspec.ValidationError, value: Any) -> str:
    """`value` is the whole body, as plain objects."""
    path, expected = wrong_value(error)
    if missing := _MISSING.fullmatch(expected):
        return f"{joined(path, missing[1])} is missing"
    return f"{path or 'the body'}: {_with_value(expected, *_found(path, value))}"


def of_pydantic_error(error: Any) -> str:
    """The first faults that it lists. `errors()` takes a kilobyte for each, so that it is not asked for very many."""
    count: int = error.error_count()
    if count > MOST_LISTED:
        return f"{count} of its members do not fit"
    return _listed(error.errors(include_url=False, include_context=False))


def _listed(errors: Sequence[Any]) -> str:
    told = "; ".join(map(_of_pydantic, errors[:MOST_FAULTS]))
    more = len(errors) - MOST_FAULTS
    return f"{told}; and {more} more" if more > 0 else told


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _of_pydantic(one: Any) -> str:
    path = ""
    for step in one["loc"]:
        path = f"{path}[{step}]" if isinstance(step, int) else joined(path, str(step)[:MOST_SHOWN])
    if one["type"] == "missing":
        return f"{path} is missing"
    text = str(one["msg"])
    return f"{path or 'the body'}: {_with_value(text[:1].lower() + text[1:], True, one.get('input'))}"


def _found(path: str, value: Any) -> tuple[bool, Any]:
    """The value at a path; False where it is not found, for a path does not tell all names."""
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return False, None
        try:
            value = value[int(step[2])] if step[2] else value[step[1]]
        except (KeyError, IndexError, TypeError):
            return False, None
        at = step.end()
    return True, value


def _with_value(expected: str, found: bool, value: Any) -> str:
    """The expectation, and what came: of large values the type, which has been named, says more."""
    text, shown = shortened(expected, MOST_TEXT), _shown(value) if found else ""
    if not shown:
        return text
    return f"{text} ({shown})" if "got `" in text else f"{text}, got {shown}"


def _shown(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)) or (isinstance(value, (dict, list)) and value):
        return ""
    try:
        return shortened(msgspec.json.encode(value).decode(), MOST_SHOWN)
    except (TypeError, ValueError, OverflowError):
        return ""
