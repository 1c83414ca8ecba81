"""A reply on its way from worker to frontend: the size of its JSON (u32, little-endian), the JSON, tensors' bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import msgspec

_SIZE = struct.Struct("<I")


def join(head: dict[str, Any], tensors: Iterable[bytes] = ()) -> bytes:
    encoded = msgspec.json.encode(head)
    return b"".join([_SIZE.pack(len(encoded)), encoded, *tensors])


def split(message: bytes) -> tuple[bytes, int]:
    """JSON and tensors as they go to an HTTP client, and how many of these bytes are JSON.

    Raises ValueError for what `join` has not made.
    """
    body = message[_SIZE.size :]
    size = _SIZE.unpack_from(message)[0] if len(message) >= _SIZE.size else 0
    if not 0 < size <= len(body):
        raise ValueError(f"a reply of {len(message)} bytes claims {size} bytes of JSON")
    return body, size
