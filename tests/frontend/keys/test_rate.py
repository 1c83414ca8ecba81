from __future__ import annotations

import pytest

from msx_frontend.keys.rate import Rate


@pytest.mark.parametrize(("per_second", "at_once"), [(0.5, 1), (1, 1), (2, 2), (5, 5), (1000, 1000)])
def test_as_many_at_once_as_a_second_allows(per_second: float, at_once: int) -> None:
    rate = Rate(per_second)
    assert [rate.take(100.0) for _ in range(at_once)] == [0.0] * at_once
    assert rate.take(100.0) == pytest.approx(1 / per_second)


@pytest.mark.parametrize("per_second", [0.5, 3, 50])
def test_in_the_long_run_no_more_than_the_rate(per_second: float) -> None:
    rate = Rate(per_second)
    taken = sum(rate.take(100 + step / 200) == 0.0 for step in range(20 * 200))
    assert per_second * 20 <= taken <= per_second * 20 + max(per_second, 1)


def test_what_is_refused_costs_nothing() -> None:
    rate = Rate(1)
    assert rate.take(100.0) == 0.0
    assert all(rate.take(100.5) for _ in range(100))
    assert rate.take(101.0) == 0.0
