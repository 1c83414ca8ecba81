"""Tensors of 8-bit floats (E4M3) with a scale for each block of a matrix, read as float32: NumPy has no such type."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
DTYPE = "F8_E4M3"
"""As safetensors files call it."""
SCALES = "_scale_inv"
"""End of the name of a tensor's scales, with which its numbers are multiplied."""
_LENGTH = 8
"""Bytes of a file's beginning, which say how long its header is."""


def read_float8(path: Path, name: str, index: tuple[slice, ...], scales: Array, block: tuple[int, int]) -> Array:
    """Rows and columns `index` of a matrix, float32; `scales` are those of the whole."""
    start, (rows, columns) = place_of(path, name)
    codes = np.memmap(path, np.uint8, "r", start, (rows, columns))
    taken = [part.indices(size) for part, size in zip((*index, slice(None), slice(None)), codes.shape, strict=False)]
    own, further = (np.arange(*it) for it in taken)
    values: Array = E4M3[codes[slice(*taken[0][:2]), slice(*taken[1][:2])]]
    values *= scales[own[:, None] // block[0], further // block[1]].astype(np.float32)
    return values


@functools.lru_cache(maxsize=4)
def _header(path: Path) -> tuple[int, dict[str, Any]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH), "little")
        return _LENGTH + length, json.loads(file.read(length))


def place_of(path: Path, name: str) -> tuple[int, tuple[int, int]]:
    """Where the tensor begins in its file, and its shape. safetensors has checked the header."""
    begin, tensors = _header(path)
    rows, columns = tensors[name]["shape"]
    return begin + tensors[name]["data_offsets"][0], (rows, columns)


def _numbers() -> Array:
    """The values of the 256 codes: a sign, 4 bits of exponent, 3 of the fraction; two are not numbers."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    normal = np.ldexp(1 + fraction / 8, exponent - 7)
    values = np.where(exponent == 0, np.ldexp(fraction / 8, -6), normal)
    values = np.where(codes & 127 == 127, np.nan, values)
    made: Array = np.where(codes & 128, -values, values).astype(np.float32)
    return made


E4M3 = _numbers()
