"""Whether batches that overlap are answered sooner."""

from __future__ import annotations

import pytest

from msx_backend.overlap.comparison import FEWEST_IN_TURN, REST, TRIAL, Comparison, FollowedBatches


def run(rate: FollowedBatches, batches: int, seconds: float, requests: int = 16) -> None:
    """Batches one behind the other, the last of them with nothing behind it."""
    for number in range(batches + 1):
        rate.ended(requests, 100 + number * seconds, followed=number < batches)


def test_a_rate_is_of_batches_behind_another_one() -> None:
    rate = FollowedBatches()
    run(rate, 3, 0.016)
    rate.ended(16, 200.0, followed=True)  # after a pause that is not the worker's
    rate.ended(16, 200.016, followed=False)
    assert rate.batches == 4
    assert rate.seconds == pytest.approx(0.001)


def test_batches_in_turn_come_first() -> None:
    comparison = Comparison()
    run(comparison.in_turn, FEWEST_IN_TURN - 1, 0.02)
    assert not comparison.allows(0.0)
    run(comparison.in_turn, 1, 0.02)
    assert comparison.allows(0.0)


@pytest.mark.parametrize(("seconds", "allowed"), [(0.01, True), (0.0205, True), (0.022, False)])
def test_overlap_stops_where_it_is_slower(seconds: float, allowed: bool) -> None:
    comparison = Comparison()
    run(comparison.in_turn, FEWEST_IN_TURN, 0.02)
    run(comparison.overlapped, TRIAL - 1, seconds)
    assert comparison.allows(50.0)
    run(comparison.overlapped, 1, seconds)
    assert comparison.allows(50.0) is allowed
    assert comparison.allows(50.0 + REST)


def test_each_trial_is_judged_anew() -> None:
    comparison = Comparison()
    run(comparison.in_turn, FEWEST_IN_TURN, 0.02)
    run(comparison.overlapped, TRIAL, 0.04)
    assert not comparison.allows(0.0)
    run(comparison.overlapped, TRIAL, 0.01)
    assert comparison.allows(REST)


def test_a_change_of_ways_is_no_batch() -> None:
    rate = FollowedBatches()
    rate.ended(16, 100.0, followed=True)
    rate.pause()
    rate.ended(16, 150.0, followed=True)
    assert rate.batches == 0
