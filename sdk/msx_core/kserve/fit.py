"""Checks that tensors fit the model's signature; without NumPy."""

import math
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeGuard

from msx_core.errors import InvalidInput
from msx_core.float_limits import FLOATS
from msx_core.kserve.types import BYTES, TensorMeta
from msx_core.mindir import DYNAMIC_RANK
from msx_core.values import show

Sizes = Sequence[int]

_TAKES: dict[str, tuple[frozenset[type], str]] = {
    "BOOL": (frozenset({bool}), "true and false"),
    BYTES: (frozenset({str, bytes}), "texts"),
    **dict.fromkeys(FLOATS, (frozenset({int, float}), "numbers")),
}
_WHOLE = frozenset({int}), "whole numbers"
_NAMES: dict[type, str] = {
    type(None): "null", bool: "true or false", int: "a number", float: "a number with a fraction", str: "a text",
    list: "a list", dict: "an object",
}  # fmt: skip


def check_inputs(tensors: Iterable[Mapping[str, Any]], specs: Sequence[TensorMeta], *, lone_rows: bool = False) -> None:
    """Tensors of the protocol: names, data types, shapes, and of JSON the values. Raises InvalidInput, which says of
    which input, what came, and what is expected.

    `lone_rows`: one row may come without the first axis. A shape of `DYNAMIC_RANK` is any.
    """
    given = {tensor["name"]: tensor for tensor in tensors}
    check_names(given, [spec.name for spec in specs], ", ".join(map(_brief, specs)))
    for spec in specs:
        _check(given[spec.name], spec, lone_rows)


def check_names(given: Collection[str], wanted: Collection[str], takes: str) -> None:
    """Raises InvalidInput, whose message ends with `takes`: the inputs with their types and shapes."""
    missing, unknown = sorted(set(wanted) - set(given)), sorted(set(given) - set(wanted))
    faults = [_named("missing", missing)] * bool(missing) + [_named("unknown", unknown)] * bool(unknown)
    if faults:
        raise InvalidInput(f"{' and '.join(faults)}; this model takes {takes}")


def check_shape(what: str, shape: Sizes, wanted: Sizes) -> None:
    """Raises InvalidInput."""
    if not _fits(shape, wanted):
        raise InvalidInput(
            f"{what}: shape {show(list(shape))} does not fit the model's {list(wanted)} (-1 is any size)"
        )


def is_sizes(shape: Any) -> TypeGuard[list[int]]:
    return isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)


def _check(tensor: Mapping[str, Any], spec: TensorMeta, lone_rows: bool) -> None:
    what, shape = f"input {spec.name!r}", tensor.get("shape")
    if tensor.get("datatype") != spec.datatype:
        raise InvalidInput(f"{what}: datatype {show(tensor.get('datatype'))}, but the model takes {spec.datatype}")
    if not is_sizes(shape):
        came = show(shape) if "shape" in tensor else "missing"
        raise InvalidInput(f"{what}: 'shape' must be a list of sizes that fits {_shape(spec)}; it is {came}")
    if not (lone_rows and spec.shape and _fits(shape, spec.shape[1:])):
        check_shape(what, shape, spec.shape or ((1,) if shape else ()))  # one value may have either
    if not hasattr(tensor.get("data"), "dtype"):  # an array has been checked when it was made
        check_values(what, spec.datatype, shape, tensor)


def check_values(what: str, datatype: str, shape: Sizes, tensor: Mapping[str, Any]) -> None:
    """Checks JSON values: `data` is flat, or nested in any rectangular way, as the protocol allows. Raises
    InvalidInput."""
    expected = f"expected a list with the {math.prod(shape)} values of shape {show(shape)}"
    if not isinstance(tensor.get("data"), list):
        came = show(tensor["data"]) if "data" in tensor else "missing"
        raise InvalidInput(f"{what}: 'data' is {came}; {expected}")
    values = _flat(what, tensor["data"])
    if len(values) != math.prod(shape):
        raise InvalidInput(f"{what}: {len(values)} values do not fill shape {show(shape)}; {expected}")
    allowed, words = _TAKES.get(datatype, _WHOLE)
    if others := set(map(type, values)) - allowed:
        came = " and ".join(sorted(_NAMES.get(other, other.__name__) for other in others))
        raise InvalidInput(f"{what}: {datatype} takes {words}, and 'data' has {came}")
    _check_range(what, datatype, values)


def _check_range(what: str, datatype: str, values: list[Any]) -> None:
    if datatype in FLOATS:
        _check_floats(what, datatype, values)
    elif "INT" in datatype and values:
        bits, signed = int(datatype.rpartition("INT")[2]), datatype.startswith("INT")
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        if min(values) < low or max(values) > high:
            raise InvalidInput(f"{what}: values must be from {low} to {high} ({datatype})")


def _check_floats(what: str, datatype: str, values: list[Any]) -> None:
    """Infinities and NaN are taken; a finite number that rounds to an infinity is refused."""
    code, largest, infinite = FLOATS[datatype]
    try:
        struct.pack(f"<{len(values)}{code}", *values)
    except (OverflowError, struct.error):  # the latter of an integer that no float holds
        pass
    else:
        if datatype != "BF16" or not any(infinite <= abs(value) < math.inf for value in values):
            return
    wrong = next(value for value in values if infinite <= abs(value) and abs(value) != math.inf)
    raise InvalidInput(f"{what}: {show(wrong)} is outside of {datatype}: from -{largest:.8g} to {largest:.8g}")


def _flat(what: str, data: list[Any]) -> list[Any]:
    while data and isinstance(data[0], list):
        size = len(data[0])
        if not all(isinstance(row, list) and len(row) == size for row in data):
            raise InvalidInput(f"{what}: the nested lists are not rectangular")
        data = list(chain.from_iterable(data))
    return data


def _fits(shape: Sizes, wanted: Sizes) -> bool:
    if tuple(wanted) == DYNAMIC_RANK:
        return True
    return len(shape) == len(wanted) and all(want in (-1, got) for want, got in zip(wanted, shape, strict=True))


def _named(what: str, names: list[str]) -> str:
    return f"{what} input {', '.join(map(repr, names))}"


def _brief(spec: TensorMeta) -> str:
    return f"{spec.name} ({spec.datatype} {_shape(spec)})"


def _shape(spec: TensorMeta) -> str:
    return "any shape" if spec.shape == DYNAMIC_RANK else str(list(spec.shape))
