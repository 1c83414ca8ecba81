"""Whether batches that overlap are answered sooner."""

from __future__ import annotations

import pytest

from msx_backend.overlap.comparison import BATCHES, FEWEST, RENEW, REST, Comparison, FollowedBatches


def run(rate: FollowedBatches, batches: int, seconds: float, requests: int = 16) -> None:
    """Batches one behind the other, the last of them with nothing behind it."""
    for number in range(batches + 1):
        rate.ended(requests, 100 + number * seconds, followed=number < batches)


def test_only_batches_behind_another_one_count() -> None:
    rate = FollowedBatches()
    run(rate, BATCHES - 1, 0.016)
    rate.ended(16, 200.0, followed=True)  # after a pause that is not the worker's
    assert not rate.known(BATCHES)
    rate.ended(16, 200.016, followed=False)
    assert rate.known(BATCHES)
    assert rate.seconds == pytest.approx(0.001)


def test_a_call_that_compiles_counts_for_nothing() -> None:
    rate = FollowedBatches()
    run(rate, 2, 30.0)
    run(rate, BATCHES - 2, 0.016)
    assert rate.seconds == pytest.approx(0.001)


def test_batches_in_turn_come_first() -> None:
    comparison = Comparison()
    run(comparison.in_turn, FEWEST - 1, 0.02)
    assert not comparison.allows(0.0)
    run(comparison.in_turn, 1, 0.02)
    assert comparison.allows(0.0)


def compared(seconds: float, batches: int = BATCHES) -> Comparison:
    """A worker that needs 20 ms for a batch in turn."""
    comparison = Comparison()
    run(comparison.in_turn, BATCHES, 0.02)
    assert comparison.allows(0.0)
    run(comparison.overlapped, batches, seconds)
    return comparison


@pytest.mark.parametrize(("seconds", "allowed"), [(0.01, True), (0.0205, True), (0.022, False)])
def test_overlap_stops_where_it_is_slower(seconds: float, allowed: bool) -> None:
    comparison = compared(seconds, BATCHES - 1)
    assert comparison.allows(10.0)
    run(comparison.overlapped, 1, seconds)
    assert comparison.allows(10.0) is allowed
    assert comparison.allows(10.0 + REST)


def test_each_trial_is_judged_anew() -> None:
    comparison = compared(0.04)
    assert not comparison.allows(10.0)
    run(comparison.overlapped, BATCHES, 0.01)
    assert comparison.allows(10.0 + REST)


def test_batches_in_turn_are_measured_anew_after_a_while() -> None:
    comparison = compared(0.01)
    assert comparison.allows(RENEW)
    assert not comparison.allows(RENEW + 1)
    run(comparison.in_turn, BATCHES, 0.005)
    assert comparison.allows(RENEW + 2)
    assert not comparison.allows(RENEW + 3)  # overlap is the slower way by now


def test_a_change_of_ways_is_no_batch() -> None:
    rate = FollowedBatches()
    for _ in range(BATCHES):
        rate.ended(16, 100.0, followed=True)
        rate.pause()
    rate.ended(16, 150.0, followed=True)
    assert not rate.known(BATCHES)
