"""A reply on its way from the worker to the server: the size of its JSON (u32, little-endian), the JSON, the tensors'
bytes."""

import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from msx_core.non_finite import non_finite

_SIZE = struct.Struct("<I")


def join(head: dict[str, Any], tensors: Iterable[bytes] = ()) -> bytes:
    encoded = msgspec.json.encode(head)
    non_finite.check(encoded, head)
    return b"".join([_SIZE.pack(len(encoded)), encoded, *tensors])


def split(message: bytes) -> tuple[bytes, int]:
    """JSON and tensors as an HTTP client gets them, and the number of bytes that are JSON. Raises ValueError for bytes
    that `join` did not make."""
    body = message[_SIZE.size :]
    size = _SIZE.unpack_from(message)[0] if len(message) >= _SIZE.size else 0
    if not 0 < size <= len(body):
        raise ValueError(f"a reply of {len(message)} bytes claims {size} bytes of JSON")
    return body, size
