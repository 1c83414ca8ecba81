"""Made-up rows for the inputs of a network, to compare its answers with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msx_core.mindir import DYNAMIC_RANK, TensorSpec

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

OPEN_ROWS = 3
OPEN_SIZE = 32
"""The size of dimensions, other than the rows, that the network leaves open."""
_UNKNOWN_INTEGERS = 2
"""Integers are below this where nothing says what they mean: 0 and 1 are right for masks, types and most indices."""


class UnknownShapeError(ValueError):
    """Nothing says which shape or type an input has."""


def sample_rows(
    inputs: Sequence[TensorSpec], rows: int | None, limits: Mapping[str, int], given: Mapping[str, Any] | None = None
) -> list[Array]:
    """`rows` different rows for each input, always the same ones; None: as many as the input says, or 3 where that is
    open. In `limits` are upper bounds of integers.

    `given`: a row, or some, of inputs by name; the further rows are their values in another order. Raises
    UnknownShapeError.
    """
    import numpy as np

    random = np.random.default_rng(0)
    own = [_own_rows((given or {}).get(spec.name), spec) for spec in inputs]
    size = next((size for one, spec in zip(own, inputs, strict=True) for size in _open_sizes(one, spec)), OPEN_SIZE)
    return [
        _random(random, spec, count, limits.get(spec.name), size) if one is None else _more(random, one, count)
        for one, spec, count in zip(own, inputs, [rows or _own_count(spec) for spec in inputs], strict=True)
    ]


def _own_count(spec: TensorSpec) -> int:
    return spec.shape[0] if spec.shape and spec.shape[0] > 0 else OPEN_ROWS


def _open_sizes(own: Array | None, spec: TensorSpec) -> list[int]:
    """The sizes that given rows have where the network leaves them open."""
    if own is None:
        return []
    return [given for given, size in zip(own.shape[1:], spec.shape[1:], strict=False) if size < 0]


def _random(random: Any, spec: TensorSpec, rows: int, limit: int | None, open_size: int) -> Array:
    import numpy as np

    dtype = _dtype(spec)
    if spec.shape == DYNAMIC_RANK or not spec.shape:
        raise UnknownShapeError(f"the input {spec.name!r} has no known shape")
    shape = [rows, *(open_size if size < 0 else size for size in spec.shape[1:])]
    if dtype.kind == "b":
        made: Array = random.random(shape) < 0.5
    elif dtype.kind in "iu":
        most = limit or (128 if dtype.itemsize == 1 else _UNKNOWN_INTEGERS)
        made = random.integers(0, min(most, np.iinfo(dtype).max), shape).astype(dtype)
    elif dtype.kind in "fc":
        made = random.standard_normal(shape).astype(dtype)
    else:
        raise UnknownShapeError(f"the input {spec.name!r} has the type {spec.dtype}")
    return made


def _own_rows(value: Any, spec: TensorSpec) -> Array | None:
    """The values as rows of the input; None where they are not."""
    import numpy as np

    if value is None:
        return None
    try:
        array = np.asarray(value).astype(_dtype(spec))
    except (TypeError, ValueError):
        return None
    array = array[None] if array.ndim == len(spec.shape) - 1 else array
    fits = len(array) > 0 if array.ndim else False
    known = fits and (spec.shape == DYNAMIC_RANK or _fits(array.shape, spec.shape))
    return array if known else None


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    pairs = zip(shape[1:], wanted[1:], strict=False)
    return len(shape) == len(wanted) and all(want in (-1, size) for size, want in pairs)


def _more(random: Any, own: Array, rows: int) -> Array:
    import numpy as np

    mixed = [random.permuted(own[:1].reshape(1, -1), axis=1).reshape(own[:1].shape) for _ in range(rows - len(own))]
    return np.ascontiguousarray(np.concatenate([own, *mixed])[:rows])


def _dtype(spec: TensorSpec) -> np.dtype[Any]:
    """NumPy has no bfloat16: the network takes float32."""
    import numpy as np

    try:
        return np.dtype("float32" if spec.dtype == "bfloat16" else spec.dtype)
    except TypeError:
        raise UnknownShapeError(f"the input {spec.name!r} has the type {spec.dtype}") from None
