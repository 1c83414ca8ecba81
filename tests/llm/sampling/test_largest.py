from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.sampling.largest import at_least_kth, largest

FLOATS = st.floats(-100, 100, width=32)


@given(st.lists(FLOATS, min_size=1, max_size=60), st.integers(1, 70))
def test_what_is_not_below_the_kth(numbers: list[float], k: int) -> None:
    values = np.array(numbers, np.float32)
    kth = sorted(numbers, reverse=True)[min(k, len(numbers)) - 1]
    assert at_least_kth(values, k).tolist() == [place for place, value in enumerate(numbers) if value >= kth]


@pytest.mark.parametrize("k", [1, 5, 40, 300])
def test_of_a_whole_vocabulary(k: int) -> None:
    values = np.random.default_rng(k).standard_normal(9_001).astype(np.float32)
    assert largest(values, k).tolist() == np.argsort(-values)[:k].tolist()


def test_the_first_of_equal_ones_comes_first() -> None:
    assert largest(np.array([1, 3, 3, 2, 3], np.float32), 2).tolist() == [1, 2]


def test_none_of_them() -> None:
    assert largest(np.ones(3, np.float32), 0).tolist() == []


def test_where_fewer_are_finite() -> None:
    values = np.full(2_000, -np.inf, np.float32)
    values[7] = 1
    assert largest(values, 3)[0] == 7
