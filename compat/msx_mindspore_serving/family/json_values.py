"""The value of one input in JSON."""

from array import array
from itertools import chain
from math import inf, prod
from typing import Any

from msx_core.float_limits import FLOATS
from msx_core.packed import OneText, Tensor
from msx_mindspore_serving.family.base64_values import (
    BYTES,
    DTYPES,
    TEXT,
    check_dimensions,
    decode,
    parse_object,
    shaped,
)
from msx_mindspore_serving.family.errors import ServingError, quoted
from msx_mindspore_serving.family.values import WrongShape

_ARRAYS = {int: ("int32", "i"), float: ("float32", "f"), bool: ("bool", "b")}
"""Type of an array, and the letter of Python's own arrays, by the type of its leaves."""

INFINITE = FLOATS["FP32"].infinite

_LEAVES = (int, float, bool, str)


def parse_value(value: Any) -> Any:
    """Scalars have the shape []. Raises ServingError."""
    kind = type(value)
    if kind is str:
        return value
    if kind is list:
        return _array(value)
    if kind is dict:
        return parse_object(value)
    if value is None:
        raise ServingError("json value is null, it is not supported")
    kind = _kind(value)
    return Tensor(_ARRAYS[kind][0], (), _numbers([value], kind))


def _array(value: list[Any]) -> Any:
    shape, leaf = _shape(value)
    if not value:
        raise ServingError("json array, shape is empty")
    kind = _kind(leaf)
    if kind is dict:
        return _of_object(leaf, shape)
    if kind not in _LEAVES:
        raise _unknown()
    if kind is str:
        _check_single(shape)
        return OneText(leaf) if len(shape) == 1 else WrongShape(shape)
    check_dimensions(len(shape))
    leaves = _leaves(value, shape)
    if {*map(type, leaves)} != {kind}:
        _check_leaves(leaves, kind)
    return Tensor(_ARRAYS[kind][0], tuple(shape), _numbers(leaves, kind))


def _shape(value: Any) -> tuple[list[int], Any]:
    """The lengths along first elements, and the first leaf."""
    shape: list[int] = []
    while type(value) is list and value:
        shape.append(len(value))
        value = value[0]
    return shape, value


def _kind(leaf: Any) -> type:
    """An integer beyond 64 bits counts as a float. Raises ServingError for one that no float32 is near to."""
    kind = type(leaf)
    if kind is not int or -(1 << 63) <= leaf < 1 << 64:
        return kind
    if abs(leaf) >= INFINITE:
        raise _outside(leaf, float)
    return float


def _of_object(leaf: dict[str, Any], shape: list[int]) -> Any:
    """Its shape is the array's."""
    name = leaf.get("type", BYTES)
    if not isinstance(name, str) or (name not in (BYTES, TEXT) and name not in DTYPES) or "b64" not in leaf:
        raise _unknown()
    if name in DTYPES:
        raise ServingError("json array, item is object type, object only support string or bytes type")
    _check_single(shape)
    return shaped(decode(leaf["b64"]), name, shape)


def _check_single(shape: list[int]) -> None:
    if prod(shape) != 1:
        raise ServingError("json array, string or bytes type only support one item")


def _leaves(value: list[Any], shape: list[int]) -> list[Any]:
    """All of them in order. Raises ServingError where lists have other lengths than the first ones."""
    level: list[Any] = [value]
    for depth, size in enumerate(shape):
        if {*map(type, level)} != {list}:
            raise ServingError("invalid json array: json type is not array")
        if {*map(len, level)} != {size}:
            wrong = next(len(one) for one in level if len(one) != size)
            raise ServingError(f"invalid json array: json size is {wrong}, the dim {depth} expected to be {size}")
        level = level[0] if len(level) == 1 else list(chain.from_iterable(level))
    return level


def _check_leaves(leaves: list[Any], kind: type) -> None:
    """Raises ServingError."""
    for leaf in leaves:
        if type(leaf) not in _LEAVES:
            raise ServingError("json array, data should be number, bool, string or bytes")
        if _kind(leaf) is not kind:
            raise ServingError("json array, elements type is not equal")


def _numbers(leaves: list[Any], kind: type) -> bytes:
    """Raises ServingError for a number that the type cannot hold, which MindSpore Serving changes to another one."""
    _, letter = _ARRAYS[kind]
    try:
        numbers = array(letter, leaves)
    except OverflowError:
        raise _outside(next(one for one in leaves if not -(1 << 31) <= one < 1 << 31), kind) from None
    if kind is float and (inf in numbers or -inf in numbers):  # JSON has no infinities
        raise _outside(next(one for one in leaves if abs(one) >= INFINITE), kind)
    return numbers.tobytes()


def _outside(number: float, kind: type) -> ServingError:
    wider, which = ("int64", "integers") if kind is int else ("float64", "numbers with a fraction, or beyond 64 bits,")
    return ServingError(
        f"json number {quoted(str(number))} is outside of {_ARRAYS[kind][0]}, which {which} are: "
        f"send it as {{'b64': ..., 'type': '{wider}', 'shape': ...}}, or over gRPC"
    )


def _unknown() -> ServingError:
    return ServingError("json array, data type is unknown")
