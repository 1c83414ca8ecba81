"""Parts of tensors of a file, by the hub's names: only what is used is read.

A quantised linear layer has its integers: `NAME.codes` [out, in], `NAME.scales` and, of some types, `NAME.zeros`
[out, groups], in place of `NAME.weight`. Every other tensor is read as numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from msx_core.gguf.blocks import FORMS, Array, BlockForm, Codes
from msx_core.gguf.header import TensorInfo, read_header
from msx_core.gguf.names import ANGLES, hub_name, linear

_TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
CODES, SCALES, ZEROS, NUMBERS = "codes", "scales", "zeros", "numbers"


class GgufFile:
    """Raises GgufError, OSError."""

    def __init__(self, path: Path) -> None:
        tensors = read_header(path).tensors
        self.data = np.memmap(path, np.uint8, "r")
        self._parts: Mapping[str, GgufPart] = dict(self._all_parts(tensors))
        self._last: tuple[Any, Codes] | None = None

    def keys(self) -> list[str]:
        return [*self._parts]

    def get_slice(self, name: str) -> GgufPart:
        return self._parts[name]

    def decoded(self, tensor: TensorInfo, form: BlockForm, rows: slice, blocks: slice) -> Codes:
        """The last one is kept: integers, scales and zero points of one layer are read one after another."""
        wanted = (tensor.name, rows.start, rows.stop, blocks.start, blocks.stop)
        if self._last is None or self._last[0] != wanted:
            kind = tensor.kind
            data = self.data[tensor.start : tensor.end].reshape(tensor.shape[0], -1, kind.size)
            self._last = (wanted, form.decode(data[rows, blocks]))
        return self._last[1]

    def _all_parts(self, tensors: Mapping[str, TensorInfo]) -> Iterator[tuple[str, GgufPart]]:
        for tensor in tensors.values():
            name, form = hub_name(tensor.name), FORMS.get(tensor.kind.name)
            if tensor.name == ANGLES:
                continue
            if form is None or (layer := linear(name)) is None or len(tensor.shape) != 2:
                yield name, GgufPart(self, tensor, form)
                continue
            for what in (CODES, SCALES, ZEROS) if form.zeros else (CODES, SCALES):
                yield f"{layer}.{what}", GgufPart(self, tensor, form, what)


@dataclass(frozen=True)
class GgufPart:
    """`form`: None for a tensor of floats."""

    file: GgufFile
    tensor: TensorInfo
    form: BlockForm | None
    what: str = NUMBERS

    def get_shape(self) -> list[int]:
        *rows, columns = self.tensor.shape
        return [*rows, columns // self._each]

    def get_dtype(self) -> str:
        return self.tensor.kind.name

    def __getitem__(self, index: Any) -> Array:
        if self.form is None:
            return self._floats(index)
        if len(self.tensor.shape) == 1:
            matrix = replace(self, tensor=replace(self.tensor, shape=(1, *self.tensor.shape)))
            row: Array = matrix[:][0][index]
            return row
        rows, columns = _both(index, self.get_shape())
        blocks, own = self._blocks(columns)
        found = self.file.decoded(self.tensor, self.form, rows, blocks)
        return np.asarray(getattr(found, self.what))[:, own]

    @property
    def _each(self) -> int:
        """Inputs for each column."""
        return 1 if self.form is None or self.what in (CODES, NUMBERS) else self.form.group

    def _blocks(self, columns: slice) -> tuple[slice, slice]:
        """The blocks that have these columns, and the columns in what is read of them."""
        each = self.tensor.kind.values // self._each
        first = columns.start // each
        return slice(first, -(-columns.stop // each)), slice(columns.start - first * each, columns.stop - first * each)

    def _floats(self, index: Any) -> Array:
        data = self.file.data[self.tensor.start : self.tensor.end]
        found: Array = data.view(_TYPES[self.tensor.kind.name]).reshape(self.tensor.shape)[index]
        if self.tensor.kind.name != "BF16":
            return found
        return (found.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _both(index: Any, shape: list[int]) -> tuple[slice, slice]:
    """Rows and columns, from number to number."""
    given = () if index is ... else index if isinstance(index, tuple) else (index,)
    rows, columns = (*given, slice(None), slice(None))[:2]
    return slice(*rows.indices(shape[0])[:2]), slice(*columns.indices(shape[1])[:2])
