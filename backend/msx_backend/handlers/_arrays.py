"""Converts one input tensor of a request, from what the client sent to an array that fits the model."""

import io
import math
from typing import Any

import numpy as np

from msx_core.mindir import DYNAMIC_RANK, TensorSpec
from msx_core.number_range import OutOfRangeError, fit, kind_of, numbers
from msx_sdk import InvalidInput

Array = np.ndarray[Any, Any]
npy: Any = np.lib.format  # has no types

NPY_MAGIC = b"\x93NUMPY"
_ACCEPTED_KINDS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b", "c": "cfiu"}


def to_array(value: Any, spec: TensorSpec) -> Array:
    """`value` (nested lists, npy or raw bytes, an array) in the data type of `spec`.

    Raises InvalidInput, which names the input.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return cast(from_bytes(bytes(value), spec), spec)
    return cast(_natural(value, spec), spec)


def cast(array: Array, spec: TensorSpec) -> Array:
    """Convert to the model's data type; refuse values that it cannot hold (1.5 or 300 as UINT8, 70000 as FP16)."""
    target = numpy_dtype(spec)
    if array.size and kind_of(array) not in _ACCEPTED_KINDS.get(target.kind, ""):
        raise InvalidInput(f"input {spec.name!r}: {array.dtype.name} values, but the model takes {spec.dtype}")
    try:
        return fit(array, target, spec.dtype)
    except OutOfRangeError as error:
        raise InvalidInput(f"input {spec.name!r}: {error}") from None


def from_bytes(data: bytes, spec: TensorSpec) -> Array:
    """Reads an npy file, or bare little-endian values if their number determines the shape."""
    return _from_npy(data, spec) if data.startswith(NPY_MAGIC) else _from_raw(data, spec)


def to_npy(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def numpy_dtype(spec: TensorSpec) -> np.dtype[Any]:
    """The NumPy type of a tensor; NumPy does not have bfloat16, so that the network takes float32 instead."""
    return np.dtype("float32" if spec.dtype == "bfloat16" else spec.dtype)


def _from_npy(data: bytes, spec: TensorSpec) -> Array:
    """The size that the header claims is compared with the bytes before anything is allocated for it."""
    file = io.BytesIO(data)
    try:
        major, _ = npy.read_magic(file)
        shape, fortran, dtype = (npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0)(file)
    except Exception as error:  # the header is a Python literal, and fails in as many ways
        raise InvalidInput(f"input {spec.name!r}: not an npy file: {error}") from None
    if dtype.hasobject or dtype.names:
        raise InvalidInput(f"input {spec.name!r}: an npy file with values of type {dtype} is refused")
    claimed, given = math.prod(shape) * dtype.itemsize, len(data) - file.tell()
    if claimed != given or min(shape, default=0) < 0:
        raise InvalidInput(f"input {spec.name!r}: the npy header promises {claimed} bytes, {given} follow")
    flat = np.frombuffer(data, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def is_raw_size(size: int, spec: TensorSpec) -> bool:
    """Whether this many bytes are the bare values of a tensor whose shape they determine."""
    unit = _raw_unit(spec)
    return unit > 0 and (size % unit == 0 if -1 in spec.shape else size == unit)


def _from_raw(data: bytes, spec: TensorSpec) -> Array:
    unit = _raw_unit(spec)
    if unit == 0:
        raise InvalidInput(f"input {spec.name!r}: raw bytes do not determine the shape; send an npy file or JSON")
    if not is_raw_size(len(data), spec):
        raise InvalidInput(
            f"input {spec.name!r}: {len(data)} raw bytes are not a {spec.dtype} tensor of shape {list(spec.shape)}, "
            f"which takes {'a multiple of ' if -1 in spec.shape else ''}{unit} bytes"
        )
    return np.frombuffer(data, numpy_dtype(spec).newbyteorder("<")).reshape(spec.shape)


def _raw_unit(spec: TensorSpec) -> int:
    """Bare values must be a multiple of this many bytes; 0 if their number does not determine the shape."""
    known = [size for size in spec.shape if size >= 0]
    if spec.shape == DYNAMIC_RANK or len(spec.shape) - len(known) > 1:
        return 0
    return math.prod(known) * numpy_dtype(spec).itemsize


def _natural(value: Any, spec: TensorSpec) -> Array:
    try:
        array = numbers(value, numpy_dtype(spec))
    except ValueError:
        raise InvalidInput(f"input {spec.name!r}: the nested lists are not rectangular") from None
    if kind_of(array) not in "biufc":
        raise InvalidInput(f"input {spec.name!r}: expected numbers in (nested) lists")
    return array


def lacks_axis(array: Array, spec: TensorSpec) -> bool:
    """Whether the array is a single row, where the model takes a batch of rows."""
    return spec.shape != DYNAMIC_RANK and array.ndim == len(spec.shape) - 1
