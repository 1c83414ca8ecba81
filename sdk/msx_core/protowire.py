"""Reads protobuf bytes by their wire format: no generated classes, no copies; long fields are skipped unread."""

import mmap
from collections.abc import Iterator

Buffer = bytes | memoryview | mmap.mmap
Span = tuple[int, int]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are not a whole protobuf message."""


def fields(data: Buffer, span: Span) -> Iterator[tuple[int, int | Span]]:
    """Yield `(number, value)`: the unsigned number of a varint, or the `(start, end)` of any other field."""
    position, end = span
    while position < end:
        key, position = _varint(data, position, end)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise WireError(f"field number 0 at byte {position}")
        if wire_type == _VARINT:
            value, position = _varint(data, position, end)
            yield number, value
        else:
            start, position = _skip(data, wire_type, position, end)
            yield number, (start, position)


def messages(data: Buffer, span: Span, wanted: int) -> Iterator[Span]:
    """Yield the spans of the length-delimited fields with the number `wanted`."""
    for number, value in fields(data, span):
        if number == wanted:
            yield as_span(value)


def as_span(value: int | Span) -> Span:
    if isinstance(value, int):
        raise WireError("a number where a message was expected")
    return value


def as_int(value: int | Span) -> int:
    """The varint as protobuf's int32 and int64 read it (two's complement of 64 bits)."""
    if not isinstance(value, int):
        raise WireError("a message where a number was expected")
    return value - (1 << 64) if value >> 63 else value


def as_text(data: Buffer, value: int | Span) -> str:
    start, end = as_span(value)
    return bytes(data[start:end]).decode("utf-8", "replace")


def packed_ints(data: Buffer, value: int | Span) -> list[int]:
    """One element of a repeated integer field: a single number, or several packed ones."""
    if isinstance(value, int):
        return [as_int(value)]
    position, end = value
    numbers = []
    while position < end:
        number, position = _varint(data, position, end)
        numbers.append(as_int(number))
    return numbers


def _skip(data: Buffer, wire_type: int, position: int, end: int) -> Span:
    if wire_type == _BYTES:
        length, position = _varint(data, position, end)
    elif wire_type in (_FIXED64, _FIXED32):
        length = 8 if wire_type == _FIXED64 else 4
    else:
        raise WireError(f"wire type {wire_type} at byte {position}")
    if length > end - position:
        raise WireError(f"a field of {length} bytes at byte {position}, where only {end - position} are left")
    return position, position + length


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise WireError(f"the end in the middle of a number at byte {position}")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position
    raise WireError(f"a number of more than ten bytes before byte {position}")
