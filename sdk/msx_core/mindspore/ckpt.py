"""Tensors of a `.ckpt` file of MindSpore, mapped into memory: only the parts that are used are read.

It is a protobuf message, a list of named tensors (mindspore/train/checkpoint.proto). Its frame is read here, because a
parser would copy the whole file; nothing in it is code. A large tensor stands in pieces behind each other, and 17 bytes
of a checksum may end the file, which is not looked at.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msx_core.errors import HandlerLoadError
from msx_core.file_kinds import CKPT, HEAD, mistaken

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MOST_TENSORS, MOST_AXES, LONGEST_NAME = 1_000_000, 8, 1024
SIZES = {"Float32": 4, "Float16": 2, "BFloat16": 2, "Float64": 8, "Int64": 8, "Int32": 4, "Int8": 1, "UInt8": 1}
"""Bytes of a number, by MindSpore's names of types."""
_VARINT, _BYTES = 0, 2
"""Wire types of protobuf that these messages have."""
_CHECKSUM = b"crc_num"


class FileRange(NamedTuple):
    start: int
    stop: int


@dataclass
class CkptTensor:
    """As safetensors' slices: `get_shape`, `get_dtype`, and an index. `pieces` are where its numbers stand."""

    data: mmap.mmap
    shape: tuple[int, ...]
    dtype: str
    pieces: list[FileRange] = field(default_factory=list)

    def get_shape(self) -> list[int]:
        return list(self.shape)

    def get_dtype(self) -> str:
        return self.dtype

    def __getitem__(self, index: Any) -> Array:
        """`...` or a tuple of slices, of which the first alone decides what is read; bfloat16 as float32."""
        first, *others = index if isinstance(index, tuple) else (slice(None),)
        start, stop, _ = first.indices(self.shape[0])
        stop = max(stop, start)
        rows = self._rows(start, stop).reshape(stop - start, *self.shape[1:])
        beside: tuple[slice, ...] = (slice(None), *others)
        return rows[beside]

    def _rows(self, start: int, stop: int) -> Array:
        import numpy as np

        width = math.prod(self.shape[1:]) * SIZES[self.dtype]
        parts = [np.frombuffer(self.data, np.uint8, *it) for it in self._parts(start * width, stop * width)]
        whole = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.uint8), *parts])
        if self.dtype == "BFloat16":
            wide = whole.view("<u2").astype(np.uint32) << 16
            return wide.view(np.float32)
        return np.require(whole.view(self.dtype.lower()), requirements="A")

    def _parts(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Numbers of bytes, and where they stand in the file, of those from `start` to `stop` of the tensor."""
        before = 0
        for piece in self.pieces:
            size = piece.stop - piece.start
            first, last = max(start - before, 0), min(stop - before, size)
            if first < last:
                yield last - first, piece.start + first
            before += size


class CkptFile:
    """Raises HandlerLoadError for a file that is not such a checkpoint, or has a tensor that is not whole."""

    def __init__(self, path: Path) -> None:
        self._name, self._tensors = path.name, dict[str, CkptTensor]()
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise HandlerLoadError(f"{path.name} cannot be read: {error}") from None
        if other := mistaken(path.name, CKPT, self._data[:HEAD]):
            raise HandlerLoadError(other)
        end = len(self._data)
        marked = end > 17 and self._data[end - 17 : end - 10] == _CHECKSUM
        for key, where in self._fields(FileRange(0, end - 17 if marked else end)):
            if key != 1 or not isinstance(where, FileRange):
                raise self._broken()
            self._add(where)
        for name, tensor in self._tensors.items():
            wanted = math.prod(tensor.shape) * SIZES[tensor.dtype]
            if sum(stop - start for start, stop in tensor.pieces) != wanted:
                raise HandlerLoadError(f"{self._name}: {name} does not have the {wanted} bytes of its shape")

    def keys(self) -> list[str]:
        return list(self._tensors)

    def get_slice(self, name: str) -> CkptTensor:
        return self._tensors[name]

    def _add(self, where: FileRange) -> None:
        """A piece of a named tensor; what has no axes, as the number of a training step, is passed over."""
        parts = dict(self._fields(where))
        if not isinstance(parts.get(1), FileRange) or not isinstance(parts.get(2), FileRange):
            raise self._broken()
        name = self._text(parts[1])
        shape, dtype, content = self._tensor(parts[2])
        if not shape or shape == (0,) or dtype == "str":
            return
        if dtype not in SIZES:
            raise HandlerLoadError(f"{self._name}: {name} has the type {dtype}; known are {', '.join(SIZES)}")
        tensor = self._tensors.setdefault(name, CkptTensor(self._data, shape, dtype))
        if (tensor.shape, tensor.dtype) != (shape, dtype) or len(self._tensors) > MOST_TENSORS:
            raise self._broken()
        tensor.pieces.append(content)

    def _tensor(self, where: FileRange) -> tuple[tuple[int, ...], str, FileRange]:
        shape: list[int] = []
        dtype, content = "", FileRange(0, 0)
        for key, value in self._fields(where):
            if key == 1:
                shape += [value] if isinstance(value, int) else self._packed(value)
            elif key == 2 and isinstance(value, FileRange):
                dtype = self._text(value)
            elif key == 3 and isinstance(value, FileRange):
                content = value
            if len(shape) > MOST_AXES:
                raise self._broken()
        return tuple(shape), dtype, content

    def _packed(self, where: FileRange) -> list[int]:
        numbers: list[int] = []
        at = where.start
        while at < where.stop and len(numbers) <= MOST_AXES:
            number, at = self._varint(at, where.stop)
            numbers.append(number)
        return numbers

    def _fields(self, where: FileRange) -> Iterator[tuple[int, Any]]:
        """Each field's number, and its value or where its bytes stand."""
        at = where.start
        while at < where.stop:
            key, at = self._varint(at, where.stop)
            value, at = self._varint(at, where.stop)
            if key & 7 == _VARINT:
                yield key >> 3, value
                continue
            if key & 7 != _BYTES or value > where.stop - at:
                raise self._broken()
            yield key >> 3, FileRange(at, at + value)
            at += value

    def _varint(self, at: int, stop: int) -> tuple[int, int]:
        value = 0
        for place in range(10):
            if at + place >= stop:
                break
            byte = self._data[at + place]
            value |= (byte & 127) << (7 * place)
            if byte < 128:
                return value, at + place + 1
        raise self._broken()

    def _text(self, where: FileRange) -> str:
        if where.stop - where.start > LONGEST_NAME:
            raise self._broken()
        return self._data[where.start : where.stop].decode("utf-8", "replace")

    def _broken(self) -> HandlerLoadError:
        return HandlerLoadError(
            f"{self._name} is not a checkpoint of MindSpore, is not whole, or is encrypted; write it anew with "
            "mindspore.save_checkpoint"
        )
