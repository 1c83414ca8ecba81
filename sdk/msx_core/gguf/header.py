"""The header of a file: its metadata, and where its tensors are."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from msx_core.file_kinds import GGUF, head_of, mistaken
from msx_core.gguf.cursor import Cursor
from msx_core.gguf.errors import GgufError
from msx_core.gguf.kinds import Kind, kind_of

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_KEYS, MOST_TENSORS, MOST_NAME, MOST_AXES, MOST_ALIGNMENT = 4096, 65_536, 256, 4, 1 << 16
MOST_NUMBERS = 1 << 48
ALIGNMENT = "general.alignment"


@dataclass(frozen=True)
class TensorInfo:
    """`shape` is NumPy's, the axis of neighbours last; `start` is its first byte in the file."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        return prod(self.shape) // self.kind.values * self.kind.size

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True)
class GgufHeader:
    """`metadata` has numbers, texts, and lists of either, by key; `tensors` are by name."""

    metadata: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]


def read_header(path: Path) -> GgufHeader:
    """Nothing of it is trusted: counts, lengths, types and places are checked against limits and the file's size.
    Raises GgufError, OSError."""
    if other := mistaken("it", GGUF, head_of(path)):
        raise GgufError(other)
    with path.open("rb") as file:
        cursor = Cursor(file)
        tensors, keys = _counts(cursor)
        metadata = _metadata(cursor, keys)
        _check_whole(metadata)
        found = [_tensor(cursor) for _ in range(tensors)]
        size = os.fstat(file.fileno()).st_size
        return GgufHeader(metadata, _placed(found, cursor.place, _alignment(metadata), size))


def _counts(cursor: Cursor) -> tuple[int, int]:
    if cursor.bytes(4) != MAGIC:
        raise GgufError("it is not a GGUF file: it does not begin with GGUF")
    version = cursor.number("I")
    if version not in VERSIONS:
        big = version in (v << 24 for v in VERSIONS)
        what = "has the bytes of numbers in the other order" if big else f"has the version {version}"
        raise GgufError(f"it {what}; versions 2 and 3 of little-endian machines are read: convert the model again")
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    for count, most, what in ((tensors, MOST_TENSORS, "tensors"), (keys, MOST_KEYS, "keys")):
        if count > most:
            raise GgufError(f"it says that it has {count:,} {what}; at most {most:,} are read")
    return tensors, keys


def _metadata(cursor: Cursor, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(count):
        key = cursor.text("a key", MOST_NAME)
        if key in found:
            raise GgufError(f"it has the key {key} twice")
        found[key] = cursor.value(key)
    return found


def _check_whole(metadata: Mapping[str, Any]) -> None:
    parts = metadata.get("split.count", 0)
    if isinstance(parts, int) and parts > 1:
        raise GgufError(f"it is one of {parts} parts of a model; join them by llama-gguf-split --merge")


def _alignment(metadata: Mapping[str, Any]) -> int:
    value = metadata.get(ALIGNMENT, 32)
    if not isinstance(value, int) or not 0 < value <= MOST_ALIGNMENT or value & (value - 1):
        raise GgufError(f"{ALIGNMENT}: {str(value)[:40]} is not a power of two up to {MOST_ALIGNMENT:,}")
    return value


def _tensor(cursor: Cursor) -> tuple[str, tuple[int, ...], Kind, int]:
    name = cursor.text("the name of a tensor", MOST_NAME)
    axes = cursor.number("I")
    if not 0 < axes <= MOST_AXES:
        raise GgufError(f"tensor {name} has {axes} axes; 1 to {MOST_AXES} are read")
    shape = tuple(cursor.number("Q") for _ in range(axes))[::-1]
    kind = kind_of(cursor.number("I"), name)
    if not all(shape) or prod(shape) > MOST_NUMBERS or shape[-1] % kind.values:
        raise GgufError(f"tensor {name} cannot have the shape {shape} with blocks of {kind.values} ({kind.name})")
    return name, shape, kind, cursor.number("Q")


def _placed(
    found: list[tuple[str, tuple[int, ...], Kind, int]], header: int, alignment: int, size: int
) -> dict[str, TensorInfo]:
    """Tensors by name: each within the file, none over another."""
    first = -(-header // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for name, shape, kind, offset in found:
        one = TensorInfo(name, kind, shape, first + offset)
        if name in tensors:
            raise GgufError(f"it has the tensor {name} twice")
        if offset % alignment:
            raise GgufError(f"tensor {name} begins at {offset}, which is not a multiple of {alignment}")
        if one.end > size:
            raise GgufError(
                f"tensor {name} ends at byte {one.end:,} of a file with {size:,}: it was not copied whole; copy or "
                "download it again"
            )
        tensors[name] = one
    _check_overlaps(tensors)
    return tensors


def _check_overlaps(tensors: Mapping[str, TensorInfo]) -> None:
    for one, other in pairwise(_in_order(tensors)):
        if other.start < one.end:
            raise GgufError(f"tensors {one.name} and {other.name} overlap")


def _in_order(tensors: Mapping[str, TensorInfo]) -> Iterator[TensorInfo]:
    return iter(sorted(tensors.values(), key=lambda one: one.start))
