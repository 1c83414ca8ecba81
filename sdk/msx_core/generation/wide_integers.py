"""Integers beyond 64 bits, which MessagePack does not have: an extension type holds their decimal digits.

JSON has them, and what a client only hands through (the arguments of a tool call, the options of a chat template) may
hold one.
"""

from typing import Any

import msgspec
from msgspec.msgpack import Ext

CODE = 1
LEAST, MOST = -(1 << 63), (1 << 64) - 1
"""The range of MessagePack's own integers."""


def packable(value: Any) -> Any:
    """The same value; integers beyond 64 bits are replaced by their extension type."""
    if isinstance(value, int):
        return value if LEAST <= value <= MOST else Ext(CODE, str(value).encode())
    if isinstance(value, dict):
        return {key: packable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [packable(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **{name: packable(item) for name, item in _members(value)})
    return value


def unpacked(code: int, data: memoryview) -> int:
    """Decode an extension, as `ext_hook`. Raises ValueError for an unknown extension type."""
    if code != CODE:
        raise ValueError(f"unknown extension type {code}")
    return int(bytes(data))


def _members(value: msgspec.Struct) -> list[tuple[str, Any]]:
    return [(name, getattr(value, name)) for name in value.__struct_fields__]
