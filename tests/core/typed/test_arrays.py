"""Arrays as members: of the type that the hint names, where nothing is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from msx_core.typed.arrays import array_of


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (NDArray[np.uint8], [[1, 255]], np.uint8),
        (NDArray[np.float16], [1], np.float16),
        (NDArray[np.uint64], [2**63 + 1, 3], np.uint64),
        (NDArray[np.bool_], [True], np.bool_),
        (NDArray[np.float32], np.ones(2), np.float32),
        (NDArray[np.int32], [], np.int32),
        (np.ndarray, [1.5], np.float64),
        (NDArray[Any], [1], np.int64),
        (NDArray[np.floating[Any]], [1.5], np.float64),
    ],
)
def test_what_is_cast(kind: Any, value: Any, expected: Any) -> None:
    assert array_of(kind, value).dtype == expected


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (NDArray[np.uint8], [256], "256 is outside of uint8: from 0 to 255"),
        (NDArray[np.uint64], [2**63, 2**64], f"{2**64} is outside of uint64: from 0 to {2**64 - 1}"),
        (NDArray[np.float16], [70000.0], "70000 is outside of float16: from -65504 to 65504"),
        (NDArray[np.int32], [0.5], "Expected integers for an array of int32, got float64"),
        (NDArray[np.bool_], [1], "Expected true and false for an array of bool, got int64"),
        (np.ndarray, [[1], 2], "Expected nested lists of equal lengths"),
        (np.ndarray, [1 << 70], "Expected numbers in nested lists"),
    ],
)
def test_what_is_refused(kind: Any, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        array_of(kind, value)
