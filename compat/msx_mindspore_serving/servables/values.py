"""Values of instances, as they go from stage to stage: arrays, texts and bytes.

A text or bytes of shape [1], as MindSpore Serving's clients send them, keeps its shape on its way to models and to the
reply; functions get and make such of shape [].
"""

from typing import Any

import numpy as np

from msx_core.number_range import OutOfRangeError, fit
from msx_core.packed import SIZES
from msx_sdk import InvalidInput

Array = np.ndarray[Any, Any]

_CAUSE = "Push py task result cause exception: "
_SMALLER = {"int64": np.int32, "float64": np.float32}
_NAMES = {"bool": "Bool", "str": "String", "bytes": "Bytes"}


class IllegalResult(Exception):
    """A function's result that has no form as a value; the message is MindSpore Serving's."""


def from_client(value: Any, name: str) -> Any:
    """Convert an input. JSON's numbers and lists become int32 and float32, as over MindSpore Serving's REST API.

    Raises InvalidInput.
    """
    if isinstance(value, np.ndarray | str | bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise InvalidInput(f"input '{name}': the nested lists do not have a rectangular shape") from None
    if array.dtype.name not in SIZES:
        raise InvalidInput(f"input '{name}': a {type(value).__name__} is not a tensor, a text or bytes")
    smaller = _SMALLER.get(array.dtype.name)
    if smaller is np.int32 and array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        return array
    try:
        return array if smaller is None else fit(array, smaller)
    except OutOfRangeError as error:
        raise InvalidInput(f"input '{name}': {error}") from None


def to_function(value: Any, *, shared: bool = False) -> Any:
    """A text is a str, bytes are an array of uint8, all others arrays that the function may write into.

    `shared`: others get the value, too.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        return np.frombuffer(bytearray(value), np.uint8)
    return value.copy() if shared or not value.flags.writeable else value


def from_function(value: Any) -> Any:
    """Convert one output of a function. Raises IllegalResult."""
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytearray | memoryview):
        return np.frombuffer(bytes(value), np.uint8)
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, np.ndarray | np.generic | bool | int | float | list):
        return _array(value)
    raise IllegalResult(f"{_CAUSE}Get illegal result data with type {type(value)}")


def type_name(value: Any) -> str:
    """As MindSpore Serving's texts call the type of a value, or a type by NumPy's name."""
    name = value if isinstance(value, str) and value in SIZES else _dtype(value)
    return f"kMSI_{_NAMES.get(name, name.capitalize())}"


def size_of(value: Any) -> int:
    """Bytes."""
    if isinstance(value, str):
        return len(value.encode())
    return len(value) if isinstance(value, bytes) else int(value.nbytes)


def is_tensor(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _dtype(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return str(value.dtype.name)
    return "str" if isinstance(value, str) else "bytes"


def _text(value: str) -> str:
    try:
        return value.encode().decode() if not value.isascii() else str(value)
    except UnicodeEncodeError as error:
        raise IllegalResult(f"{_CAUSE}{error}") from None


def _array(value: Any) -> Array:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        raise IllegalResult(f"{_CAUSE}Get illegal result data with type {type(value)}") from None
    if isinstance(value, int) and array.dtype != (np.bool_ if isinstance(value, bool) else np.int64):
        raise IllegalResult(f"{_CAUSE}Unable to cast Python instance of type {type(value)} to C++ type 'long'")
    if array.dtype.name not in SIZES:
        raise IllegalResult(f"{_CAUSE}Get illegal result data with type {type(value)}")
    # A copy: the function may keep what it returns, and the next stage may write into it.
    return np.array(array, array.dtype.newbyteorder("="), order="C")
