"""References to values that stand in shared memory, as they travel inside of packed values.

A reference is the extension type 2: the owner of the segment and the segment's number (4 bytes each), where the value
begins in it and its size in bytes (8 bytes each), all of it little-endian. For an array its head follows, as in the
extension type of arrays; without a head the value is bytes.
"""

import struct
from typing import Any, NamedTuple, Protocol

REFERENCE = 2
"""The code of the extension type."""

LEAST = 1 << 16
"""Bytes. A larger value may stand in shared memory; others travel in the frame."""

_PLACE = struct.Struct("<IIQQ")

Key = tuple[int, int]
"""A segment: its owner and its number."""


class Reference(NamedTuple):
    """`dtype` is "" for bytes."""

    owner: int
    segment: int
    start: int
    size: int
    dtype: str = ""
    shape: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        return self.owner, self.segment


class SharedPlace(Protocol):
    """Where the large values of a reply may stand. Each method returns None for what has to travel in the frame."""

    def array(self, value: Any) -> Reference | None:
        """Reference to a NumPy array."""

    def data(self, value: bytes | bytearray | memoryview) -> Reference | None: ...


class SharedValues(Protocol):
    """The shared memory of one request in a stage's worker.

    `keys`: what its fields refer to. `lent`: what the reply that is sent next refers to.
    """

    keys: list[Key]
    lent: list[Key]

    def resolve(self, reference: Reference) -> Any:
        """Bytes, or an array that cannot be written. Raises InvalidPacked, PredictionError."""

    def resolve_copy(self, reference: Reference) -> Any:
        """The same, but the array is the caller's own."""

    def pack(self, value: Any) -> bytes:
        """As `packed.pack`, with large values in shared memory."""

    def output(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array that is sent without a copy, or an ordinary one where that cannot be."""

    def close(self) -> None:
        """The request is over."""


def place_bytes(reference: Reference) -> bytes:
    return _PLACE.pack(reference.owner, reference.segment, reference.start, reference.size)


def split_place(data: memoryview) -> tuple[tuple[int, int, int, int], memoryview]:
    """Owner, segment, start and size, and what follows them. Raises struct.error."""
    return _PLACE.unpack_from(data), data[_PLACE.size :]
