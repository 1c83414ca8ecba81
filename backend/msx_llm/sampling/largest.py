"""Finds the largest of many numbers without sorting them all."""

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]
Ids = NDArray[np.intp]
GROUPS = 256


def at_least_kth(values: Row, k: int) -> Ids:
    """Indices of the `k` largest values and of ties with the last of them, ascending. values [n], 1 <= k."""
    if k >= values.size:
        return np.arange(values.size)
    return np.flatnonzero(values >= _kth(values, k))


def largest(values: Row, k: int) -> Ids:
    """Indices of the `k` largest values, the largest first; among equal ones the first. values [n]."""
    places = at_least_kth(values, k) if k else np.arange(0)
    order: Ids = np.argsort(-values[places], kind="stable")[:k]
    return np.take(places, order)


def _kth(values: Row, k: int) -> np.float32:
    likely = values[values >= _bound(values, k)]
    kth: np.float32 = np.partition(likely, -k)[-k]
    return kth


def _bound(values: Row, k: int) -> np.float32 | float:
    """The k-th largest among the maxima of many groups: at least k values, and few more, are not below it."""
    rows = values.size // max(4 * k, GROUPS)
    if rows < 2:
        return -np.inf
    maxima = values[: values.size // rows * rows].reshape(rows, -1).max(axis=0)
    bound: np.float32 = np.partition(maxima, -k)[-k]
    return bound
