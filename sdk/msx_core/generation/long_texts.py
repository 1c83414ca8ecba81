"""Long texts in MessagePack without a long pause.

To encode some megabytes of text at once keeps the interpreter for 4 to 20 ms, most of it for new memory of up to three
times the size. A slice takes a twentieth of a millisecond, and whoever asks for the slices may do something else
between two.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from msx_core.generation.wire import encode

SLICE = 1 << 16
"""Characters. Shorter texts are encoded at once."""
DEPTH = 4
"""Levels of a value at which a long text may stand: a request's messages have parts, which have texts."""


def slices_of(message: msgspec.Struct) -> Iterator[bytes]:
    """Yield the bytes of `encode` in pieces, some of which are empty. Raises UnicodeEncodeError as it does."""
    texts: list[str] = []
    mark = os.urandom(16)
    rest = encode(_marked(message, DEPTH, texts, msgspec.Raw(mark))).split(mark)
    for before, text in zip(rest, texts, strict=False):
        yield before
        yield from _text_slices(text)
    yield rest[-1]


def encode_long(message: msgspec.Struct) -> bytes:
    """The bytes of `encode`. It takes longer than that for a message without a long text."""
    return b"".join(slices_of(message))


def _text_slices(text: str) -> Iterator[bytes]:
    """The head of a `str 32`, which has the length, and the text."""
    slices = []
    for at in range(0, len(text), SLICE):
        slices.append(text[at : at + SLICE].encode())
        yield b""
    yield b"\xdb" + sum(map(len, slices)).to_bytes(4, "big")
    yield from slices


def _marked(value: Any, depth: int, texts: list[str], mark: msgspec.Raw) -> Any:
    """The same value with the mark in place of long texts, which are added to `texts`."""
    if isinstance(value, str):
        if len(value) <= SLICE:
            return value
        texts.append(value)
        return mark
    if not depth:
        return value
    if isinstance(value, msgspec.Struct):
        changed = _changed(((name, getattr(value, name)) for name in value.__struct_fields__), depth, texts, mark)
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        return value | changed if (changed := _changed(value.items(), depth, texts, mark)) else value
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], int):  # a million token ids
        changed = _changed(enumerate(value), depth, texts, mark)
        return [changed.get(index, item) for index, item in enumerate(value)] if changed else value
    return value


def _changed(members: Iterable[tuple[Any, Any]], depth: int, texts: list[str], mark: msgspec.Raw) -> dict[Any, Any]:
    return {name: new for name, old in members if (new := _marked(old, depth - 1, texts, mark)) is not old}
