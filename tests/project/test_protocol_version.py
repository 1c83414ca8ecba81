"""Messages of the workers' protocol and its number: an interpreter whose workers have another number is refused."""

from __future__ import annotations

import hashlib

import msgspec

import msx_protocol.segments  # noqa: F401 - its messages count, too
from msx_protocol import PROTOCOL_VERSION, WireMessage

SHAPES = {1: "aae361389505"}
"""The messages of each number. 0.1.0 has none; 1 is that of 0.2.0, and may get another shape until then."""


def members(message: type[WireMessage]) -> list[str]:
    """Names in their order, with a mark on those that may be left out."""
    return [field.name + ("" if field.required else "?") for field in msgspec.structs.fields(message)]


def shape() -> str:
    messages = [one for one in WireMessage.__subclasses__() if one.__module__.startswith("msx_protocol.")]
    rows = sorted((one.__name__, str(one.__struct_config__.tag), members(one)) for one in messages)
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]


def test_a_change_of_the_messages_is_told_by_the_number() -> None:
    assert max(SHAPES) == PROTOCOL_VERSION
    assert shape() == SHAPES[PROTOCOL_VERSION], (
        "the messages have changed: where a release has this number, raise PROTOCOL_VERSION in "
        "backend/msx_protocol/version.py; then note the new shape here"
    )
