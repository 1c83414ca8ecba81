"""How far two answers of a network to the same rows are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

TOLERANCE, TOLERANCE_OF_16_BITS = 1e-3, 3e-2
"""A part of the largest value of an output; what orders of summation differ by is below a hundredth of it."""
_NUMBERS = "biufc"
_SHORT = ("float16", "bfloat16")


class Difference(NamedTuple):
    """The place of an output where two answers differ most. `largest`: the output's largest absolute value, or 1."""

    size: float
    largest: float
    given: float
    wanted: float

    @property
    def part(self) -> float:
        """The difference as a part of the largest value."""
        return self.size / self.largest


def differ(given: Array, wanted: Array) -> Difference:
    """Compares two arrays of one shape; NaN equals NaN. Integers and booleans are compared as numbers; what is none is
    equal, or infinitely far apart."""
    import numpy as np

    if wanted.dtype.kind not in _NUMBERS or given.dtype.kind not in _NUMBERS:
        return Difference(0.0 if np.array_equal(given, wanted) else np.inf, 1.0, 0.0, 0.0)
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    one, other = given.astype(kind), wanted.astype(kind)
    if not other.size:
        return Difference(0.0, 1.0, 0.0, 0.0)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(one - other))
    apart = np.where(np.isnan(apart), np.inf, apart)
    worst = np.unravel_index(int(np.argmax(apart)), apart.shape)
    finite = np.abs(other[np.isfinite(other)])
    largest = float(finite.max()) if finite.size else 0.0
    return Difference(float(apart[worst]), largest or 1.0, float(one[worst].real), float(other[worst].real))


def tolerance_of(dtype: str) -> float:
    """The part of the largest value by which numbers of this type may differ."""
    return TOLERANCE_OF_16_BITS if dtype in _SHORT else TOLERANCE
