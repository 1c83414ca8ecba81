"""Bodies and form fields: what the content type says, and what the handler gets."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Literal, Protocol

import msgspec

from msx_core.elements import ElementLimit, TooManyElements, check_json, check_msgpack
from msx_core.errors import InvalidInput
from msx_core.failures import shortened
from msx_core.packed import PACKED, InvalidPacked, Resolve, unpack

JSON = "application/json"

JsonBodies = Literal["strict", "lenient"]
"""How a body that is declared as JSON is treated. `strict`: the type is compared in any case, `+json` counts, and a
body that cannot be parsed is refused before the handler runs. `lenient`: TorchServe's rule, exactly `application/json`,
and a body that cannot be parsed reaches the handler as bytes."""

Data = bytes | bytearray
ReadsPart = Callable[[str, Data, str | None, Resolve | None], Any]
"""Decodes a field: its name, bytes and content type, and what resolves references to shared memory. Raises
InvalidInput."""


class Input(Protocol):
    """Input of a request as it was read: one of the Open Inference Protocol, or an object of the handler's type."""

    @property
    def is_json(self) -> bool:
        """The whole body is JSON, and is decoded like any other where the server leaves bodies as they are."""

    def data(self) -> Any: ...


def media_type(content_type: str) -> str:
    """The type in lower case and without parameters, as RFC 9110 compares it."""
    return content_type.partition(";")[0].strip().lower()


@lru_cache(maxsize=1000)
def says_json(content_type: str) -> bool:
    kind = media_type(content_type)
    return kind == JSON or kind.endswith("+json")


def lenient(data: Data, content_type: str | None) -> Any:
    """JSON and text are decoded, as in TorchServe; anything else, and what cannot be decoded, becomes a bytearray."""
    if content_type and (decode := _decoder(content_type)):
        try:
            return decode(data)
        except (ValueError, RecursionError):
            pass
    return raw(data)


def strict(field: str, data: Data, content_type: str | None, resolve: Resolve | None = None) -> Any:
    """As `lenient`, but any spelling of a JSON type counts. `resolve` is for references to shared memory.

    Raises InvalidInput if it cannot be parsed.
    """
    if content_type == PACKED:
        return _unpacked(field, data, resolve)
    if not content_type or not says_json(content_type):
        return lenient(data, content_type)
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(malformed(f"{field} ({content_type[:100]})", data, error)) from None


def _unpacked(field: str, data: Data, resolve: Resolve | None) -> Any:
    try:
        if resolve is None:  # it comes from a client, not from a stage of the same model
            check_msgpack(data)
        return unpack(data, resolve=resolve)
    except InvalidPacked as error:
        raise InvalidInput(f"{field} is not a value of {PACKED}: {error}.") from None
    except TooManyElements as error:
        raise InvalidInput(f"{field}: {error}.") from None


def raw(data: Data) -> bytearray:
    return data if isinstance(data, bytearray) else bytearray(data)


def read_json(what: str, data: Data) -> Any:
    """Raises InvalidInput with the error, its line and its column."""
    try:
        return json_value(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(malformed(what, data, error)) from None


def json_value(data: Data | memoryview, *, halves: bool = True) -> Any:
    """Return Python's JSON, with NaN and Infinity, which Python's clients send.

    `halves`: texts may have one half of a surrogate pair, as in Python, which a reply in UTF-8 cannot repeat. Raises
    ValueError, also for too many elements and for numbers beyond 64-bit floats; RecursionError if it is nested too
    deeply.
    """
    if len(data) > ElementLimit.most:
        check_json(data)
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        text, found = bytes(data), list[_BeyondFloats]()
        if not halves and _HALF.search(text.decode(json.detect_encoding(text)).encode()):
            raise
        value = json.loads(text, parse_float=partial(_number, found))
    if found:
        where, largest = next(_places(value, "")), sys.float_info.max
        raise ValueError(f"{where} is {shortened(found[0], 40)}: 64-bit floats are from {-largest:g} to {largest:g}")
    return value


class _BeyondFloats(str):
    """A number of JSON, not infinite itself, that Python would read as infinite."""


def _number(found: list[_BeyondFloats], text: str) -> float | _BeyondFloats:
    if abs(value := float(text)) < math.inf:
        return value
    found.append(_BeyondFloats(text))
    return found[-1]


def _places(value: Any, place: str) -> Iterator[str]:
    """Yield the members that are beyond 64-bit floats."""
    if isinstance(value, _BeyondFloats):
        yield place or "the number"
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _places(member, f"{place}.{name[:40]}" if place else name[:40])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, f"{place}[{index}]")


def fault(data: Data, error: Exception) -> str:
    """Describes an error that `json_value` raised."""
    if not data.strip():
        return "it is empty"
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    if isinstance(error, UnicodeDecodeError):
        return f"{_place(data, _start(data, error.encoding, error.start))}: a byte that is not {error.encoding}"
    if isinstance(error, msgspec.DecodeError) and str(error).startswith(_NO_TEXT):
        return f"{_place(data, _start(data, 'utf-8', 0))}: a byte that is not utf-8"
    if isinstance(error, msgspec.DecodeError) and (half := _HALF.search(data)):
        return f"{_place(data, half.start())}: half of a surrogate pair, which is not a character"
    if isinstance(error, msgspec.DecodeError) and (found := _MALFORMED.fullmatch(str(error))):
        return f"{_place(data, int(found['at']))}: {found['what']}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


_MALFORMED = re.compile(r"JSON is malformed: (?P<what>.*) \(byte (?P<at>\d+)\)")
"""Message of msgspec for malformed JSON."""
_NO_TEXT = "Invalid UTF-8"
"""Beginning of msgspec's message for a text that is none; before 0.23 it raised UnicodeDecodeError."""
_HALF = re.compile(
    rb"(?<!\\)(?:\\\\)*"  # a backslash that is escaped escapes nothing
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F])"
)
"""An escape of one half of a surrogate pair in JSON, without the other half: msgspec reads none."""


def _start(data: Data, encoding: str, otherwise: int) -> int:
    """Place of the error in the whole: msgspec decodes text by text."""
    try:
        data.decode(encoding)
    except UnicodeDecodeError as whole:
        return whole.start
    return otherwise


def _place(data: Data, at: int) -> str:
    """Line and column of a byte, as editors count."""
    before = bytes(data[:at])
    return f"line {before.count(10) + 1}, column {at - before.rfind(10)}"


def malformed(what: str, data: Data, error: Exception, form: str = "JSON") -> str:
    """The sentence for an error that `json_value`, or a reader of MessagePack, raised."""
    if isinstance(error, TooManyElements):
        return f"{what}: {error}"
    return f"{what} is not valid {form}: {fault(data, error)}"


@lru_cache(maxsize=1000)
def _decoder(content_type: str) -> Callable[[Data], Any] | None:
    """TorchServe's rule: exactly `application/json` (parameters aside), or a type that starts with `text`."""
    kind = content_type.partition(";")[0].strip()
    return _torchserve_json if kind == JSON else _text if kind.startswith("text") else None


def _torchserve_json(data: Data) -> Any:
    """As Python has it: a number beyond 64-bit floats is infinite. Raises what `json_value` raises."""
    if len(data) > ElementLimit.most:
        check_json(data)
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)


def _text(data: Data) -> str:
    return data.decode()
