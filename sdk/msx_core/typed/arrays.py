"""NumPy arrays as members of requests and replies."""

import sys
from typing import Any, get_args, get_origin


def is_array(kind: Any) -> bool:
    """Whether it is `numpy.ndarray`, or `NDArray[…]`."""
    numpy, plain = sys.modules.get("numpy"), get_origin(kind) or kind
    return numpy is not None and isinstance(plain, type) and issubclass(plain, numpy.ndarray)


def array_of(kind: Any, value: Any) -> Any:
    """An array of the kind, from nested lists of numbers or another array. Raises ValueError, which says why not."""
    from msx_core.number_range import kind_of, numbers

    wanted = dtype_of(kind)
    try:
        array = numbers(value, wanted)
    except ValueError:
        raise ValueError("Expected nested lists of equal lengths") from None
    if kind_of(array) not in "biuf" or (array.dtype.kind == "O" and wanted is None):
        raise ValueError(f"Expected numbers in nested lists, got {_named(value)}")
    return array if wanted is None or wanted == array.dtype else _cast(array, wanted)


def dtype_of(kind: Any) -> Any:
    """The NumPy type that `NDArray[float32]` names; None for any."""
    import numpy as np

    arguments = get_args(kind)
    scalar = get_args(arguments[1]) if len(arguments) > 1 else ()
    named = bool(scalar) and isinstance(scalar[0], type) and issubclass(scalar[0], np.generic)
    try:
        return np.dtype(scalar[0]) if named else None
    except TypeError:  # an abstract one, such as np.floating
        return None


def _cast(array: Any, wanted: Any) -> Any:
    """Raises ValueError, for a number that `wanted` cannot hold, too."""
    from msx_core.number_range import fit

    if wanted.kind in "iu" and array.size and array.dtype.kind == "f":
        raise ValueError(f"Expected integers for an array of {wanted}, got {array.dtype}")
    if wanted.kind == "b" and array.dtype.kind != "b" and array.size:
        raise ValueError(f"Expected true and false for an array of bool, got {array.dtype}")
    return fit(array, wanted)


def _named(value: Any) -> str:
    return {dict: "an object", str: "a text", type(None): "null"}.get(type(value), "other values")
