"""A row a text."""

from __future__ import annotations

from msx_llm.mindir.pool import RowPool
from msx_llm.step import Decode


def test_rows_are_taken_and_given_back() -> None:
    pool = RowPool(2, 8)
    first, second = pool.take([1, 2], spare=1), pool.take([3])
    assert first is not None
    assert second is not None
    assert (first.slot, second.slot, first.cached, first.before) == (0, 1, 0, [])
    assert (pool.take([4]), pool.used, pool.total, pool.prefixes.placed) == (None, 2, 2, 3)
    assert pool.grow(0, 8) == []
    pool.free(0)
    again = pool.take([5])
    assert again is not None
    assert again.slot == 0


def test_a_row_whose_step_failed_is_tried() -> None:
    pool = RowPool(1, 8)
    pool.take([1])
    assert pool.scrap(0) == [Decode((0,), (0,), (0,))]
    assert pool.used == 0
