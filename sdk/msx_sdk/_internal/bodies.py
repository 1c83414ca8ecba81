"""A body, or a field of a form: what its content type says of it, and what a handler gets of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import msgspec

from msx_sdk.errors import InvalidInput

JSON = "application/json"

JsonBodies = Literal["strict", "lenient"]
"""What becomes of a body that says that it is JSON.

`strict`: any case and `+json` count, and what cannot be parsed is refused before the handler runs. `lenient`:
TorchServe's rule, exactly `application/json`, and what cannot be parsed reaches the handler as bytes.
"""

Data = bytes | bytearray


def media_type(content_type: str) -> str:
    """In lower case and without parameters, as RFC 9110 compares it."""
    return content_type.partition(";")[0].strip().lower()


@lru_cache(maxsize=1000)
def says_json(content_type: str) -> bool:
    kind = media_type(content_type)
    return kind == JSON or kind.endswith("+json")


def lenient(data: Data, content_type: str | None) -> Any:
    """JSON and text are decoded, as TorchServe does it; everything else, and what cannot be decoded, is a bytearray."""
    if content_type and (decode := _decoder(content_type)):
        try:
            return decode(data)
        except (ValueError, RecursionError):
            pass
    return raw(data)


def strict(field: str, data: Data, content_type: str | None) -> Any:
    """The same, but JSON is known by any spelling of its type. Raises InvalidInput where it cannot be parsed."""
    if not content_type or not says_json(content_type):
        return lenient(data, content_type)
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"{field} ({content_type[:100]})", data, error) from None


def raw(data: Data) -> bytearray:
    return data if isinstance(data, bytearray) else bytearray(data)


def read_json(what: str, data: Data) -> Any:
    """Raises InvalidInput, which says what is wrong, in which line and column."""
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        raise _malformed(what, data, error) from None


def json_value(data: Data) -> Any:
    """Python's JSON, with NaN and Infinity. Raises ValueError, or RecursionError for what is nested too deeply."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)  # which Python's clients send


def fault(data: Data, error: Exception) -> str:
    """What `json_value` found wrong."""
    if isinstance(error, json.JSONDecodeError):
        if not data.strip():
            return "it is empty"
        return f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    if isinstance(error, UnicodeDecodeError):
        line, begins = data.count(b"\n", 0, error.start) + 1, data.rfind(b"\n", 0, error.start) + 1
        return f"line {line}, column {error.start - begins + 1}: a byte that is not {error.encoding}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _malformed(what: str, data: Data, error: Exception) -> InvalidInput:
    return InvalidInput(f"{what} is not valid JSON: {fault(data, error)}")


@lru_cache(maxsize=1000)
def _decoder(content_type: str) -> Callable[[Data], Any] | None:
    """TorchServe's rule: exactly `application/json` (parameters aside), or a type that starts with `text`."""
    kind = content_type.partition(";")[0].strip()
    return json_value if kind == JSON else _text if kind.startswith("text") else None


def _text(data: Data) -> str:
    return data.decode()
