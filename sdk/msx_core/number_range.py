"""Numbers of requests as arrays, and those that the type of a tensor cannot hold. Needs NumPy."""

from typing import Any

import numpy as np

from msx_core.float_limits import FLOATS

Array = np.ndarray[Any, Any]

_BFLOAT16 = FLOATS["BF16"]


class OutOfRangeError(ValueError):
    """A finite number beyond the type. The message has the number, the type and its limits."""


def numbers(value: Any, dtype: Any = None) -> Array:
    """Return nested lists as an array: integers that `dtype` may need exactly as Python's own (dtype object).

    NumPy makes floats of integers on both sides of 2⁶³, and objects of larger ones. Raises ValueError for lists that
    are not rectangular.
    """
    try:
        array = np.asarray(value)
    except OverflowError:
        raise ValueError("the nested lists are not rectangular") from None
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and dtype is not None and np.dtype(dtype).kind in "iu"):
        exact = np.asarray(value, object)
        if exact.size and {*map(type, exact.ravel().tolist())} == {int}:
            return exact
    return array


def kind_of(array: Array) -> str:
    """Return the kind of NumPy's type; `i` for Python's integers, which `numbers` returns."""
    exact = array.dtype.kind == "O" and array.size and isinstance(array.flat[0], int)
    return "i" if exact else array.dtype.kind


def fit(array: Array, dtype: Any, name: str = "") -> Array:
    """Return the numbers as `dtype`, floats rounded; NaN and infinities stay what they are.

    `name`: the type's name in messages; `bfloat16` is computed from float32. Raises OutOfRangeError for a number that
    `dtype` cannot hold.
    """
    target = np.dtype(dtype)
    name = name or target.name
    if target.kind in "iu":
        _check_integers(array, target, name)
        return array.astype(target, copy=False)
    return _floats(array, target, name) if target.kind == "f" else array.astype(target, copy=False)


def _check_integers(array: Array, target: np.dtype[Any], name: str) -> None:
    limits = np.iinfo(target)
    for found in (int(array.min()), int(array.max())) if array.size else ():
        if not limits.min <= found <= limits.max:
            raise OutOfRangeError(f"{_shown(found)} is outside of {name}: from {limits.min} to {limits.max}")


def _floats(array: Array, target: np.dtype[Any], name: str) -> Array:
    try:
        with np.errstate(over="ignore"):
            floats: Array = array.astype(target, copy=False)
    except OverflowError:
        raise _beyond(max(array.ravel().tolist(), key=abs), target, name) from None
    if floats is not array and not np.isfinite(floats).all():
        _check_finite(array[np.isinf(floats)], target, name)
    if name == "bfloat16":
        _check_finite(array[np.abs(array) >= _BFLOAT16.infinite], target, name)
    return floats


def _check_finite(infinite: Array, target: np.dtype[Any], name: str) -> None:
    """Check that what became infinite was so before."""
    lost = [number for number in infinite.tolist() if abs(number) != float("inf")]
    if lost:
        raise _beyond(lost[0], target, name)


def _beyond(number: float, target: np.dtype[Any], name: str) -> OutOfRangeError:
    largest = _BFLOAT16.largest if name == "bfloat16" else float(np.finfo(target).max)
    return OutOfRangeError(f"{_shown(number)} is outside of {name}: from -{largest:.8g} to {largest:.8g}")


def _shown(number: float) -> str:
    if not isinstance(number, int):
        return f"{number:.8g}"
    bits = number.bit_length()
    return str(number) if bits <= 128 else f"an integer of {bits} bits"
