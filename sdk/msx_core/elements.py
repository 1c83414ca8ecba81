"""Counts what JSON and MessagePack of a client would become, before any of it is made.

Counted are lists, objects, texts, keys and bytes: one may take up to a hundred times its bytes. Numbers are bounded by
their bytes, of which one may take eighteen times as many: pictures as JSON have a million of them.
"""

import re
from collections.abc import Iterator

Data = bytes | bytearray | memoryview

DEFAULT = 500_000


class TooManyElements(ValueError):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"it has more than {most} texts, lists and objects; max_request_elements of the server's config.properties "
            "is the limit"
        )


class ElementLimit:
    most = DEFAULT
    """Limit of this process. Data of no more bytes have no more elements, and need no call."""


def limit_to(most: int) -> None:
    """Set the limit of this process. The server and each worker call it when they begin."""
    ElementLimit.most = most


def check_json(data: Data, most: int | None = None) -> None:
    """Raises TooManyElements. What is not JSON is left to its reader."""
    most = ElementLimit.most if most is None else most
    if len(data) <= most:
        return
    whole = data if isinstance(data, (bytes, bytearray)) else bytes(data)
    quotes, lists, objects = (_count(whole, sign) for sign in (b'"', b"[", b"{"))
    if quotes // 2 + lists + objects > most:  # some of these may stand in texts
        _check(_of_json(whole), most)


def check_msgpack(data: Data, most: int | None = None) -> None:
    """Raises TooManyElements. What is not MessagePack is left to its reader."""
    most = ElementLimit.most if most is None else most
    if len(data) > most:
        _check(_of_msgpack(bytes(data)), most)


def _check(found: Iterator[object], most: int) -> None:
    for number, _ in enumerate(found):
        if number >= most:
            raise TooManyElements(most)


FEW = 4_096


def _count(data: bytes | bytearray, sign: bytes) -> int:
    """`bytes.count`, which looks at every byte. Where the sign is rare, as in a long text, it is found at a twentieth
    of the time."""
    at = data.find(sign)
    for number in range(FEW):
        if at < 0:
            return number
        at = data.find(sign, at + 1)
    return FEW + data.count(sign, at) if at >= 0 else FEW


_TEXT_OR_OPENING = re.compile(rb'"[^"]*"|[\[{]')


def _of_json(data: bytes | bytearray) -> Iterator[object]:
    """An entry for each text, list and object: without escapes, a text ends at the next quotation mark."""
    return _TEXT_OR_OPENING.finditer(data.replace(rb"\\", b"").replace(rb"\"", b""))


_NUMBERS = re.compile(
    rb"(?:[\x00-\x7f\xc0\xc2\xc3\xe0-\xff]+|[\xcc\xd0].|[\xcd\xd1]..|[\xca\xce\xd2].{4}|[\xcb\xcf\xd3].{8}){1,4096}",
    re.DOTALL,
)
"""Numbers, truth values and nil, one behind the other."""
_LENGTHS = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4}
"""Texts, bytes and extensions, which say their length in so many bytes."""
_HEADS = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""Lists and objects, which say how many values follow."""
_FIXED = {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
"""Extensions of fixed length, with their type."""


def _of_msgpack(data: bytes) -> Iterator[object]:
    """An entry for each text, list and object. Values stand one behind the other, whatever holds them."""
    at, end = 0, len(data)
    while at < end:
        if (numbers := _NUMBERS.match(data, at)) is not None:
            at = numbers.end()
            continue
        yield at
        at += _size(data, at)


def _size(data: bytes, at: int) -> int:
    """Bytes of the value that begins here, of a list or an object those of its head."""
    kind = data[at]
    if kind < 0xA0:  # a short list or object
        return 1
    if kind < 0xC0:  # a short text
        return 1 + (kind & 31)
    if (head := _HEADS.get(kind)) is not None:
        return 1 + head
    if (length := _LENGTHS.get(kind)) is not None:
        typed = kind in (0xC7, 0xC8, 0xC9)
        return 1 + length + typed + int.from_bytes(data[at + 1 : at + 1 + length], "big")
    return 1 + _FIXED.get(kind, 0)
