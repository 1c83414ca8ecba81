"""Counts in the reports of `utilisation`."""

from __future__ import annotations

import pytest

from benchmarks.utilisation.clock import Setting, targets
from benchmarks.utilisation.figures import Record, Turn, full_share

CALL = 0.02
"""Seconds of a call of the device, of 16 requests."""


def record(*rates: float, sizes: tuple[int, ...] = (16,), name: str = "msx") -> Record:
    """A server with turns of these rates, whose calls have had these sizes for ten seconds."""
    calls = [(CALL * number, CALL * (number + 1), sizes[number % len(sizes)]) for number in range(500)]
    return Record(name, 16, [Turn(rate, 0.0235, [CALL, CALL], [CALL], calls) for rate in rates])


def test_a_ratio_is_that_to_full_batches_one_behind_the_other() -> None:
    assert record(776.0, 800.0).ratios == pytest.approx([0.97, 1.0])


def test_neither_the_begin_nor_the_end_of_a_load_counts_as_batches_that_are_not_full() -> None:
    calls = [(0.0, 0.2, 1), (0.6, 0.8, 16), (0.8, 1.0, 16), (1.0, 1.2, 8), (1.2, 1.4, 16), (1.8, 2.0, 3)]
    assert full_share(calls, 16) == 0.75
    assert record(800.0, sizes=(16, 16, 12, 16)).full == pytest.approx(0.75, abs=0.01)


def test_a_row_has_what_a_lone_request_takes_beyond_the_call() -> None:
    name, rate, ratio, _, full, busy, p50, more = record(790.0, 776.0, 800.0).row()
    assert (name, rate, ratio, full, busy) == ("msx", "790", "0.988", "100.0%", "100.0%")
    assert (p50, more) == ("23.5", "3.50")


@pytest.mark.parametrize(
    ("setting", "limits"),
    [
        (Setting(20.0, 2.0), ["≥ 0.97", "≥ 99%"]),
        (Setting(5.0, 1.0), ["≥ 0.95", "≥ 99%"]),
        (Setting(5.0, 2.0), []),
        (Setting(2.0, 0.2), []),
    ],
)
def test_targets_are_for_calls_that_leave_time_for_python(setting: Setting, limits: list[str]) -> None:
    assert [target.limit for target in targets(setting, record(800.0))] == limits


def test_a_ratio_of_batches_that_are_not_full_is_no_success() -> None:
    assert [target.met for target in targets(Setting(20.0, 1.0), record(770.0))] == [False, True]
    assert [target.met for target in targets(Setting(20.0, 1.0), record(790.0, sizes=(16, 12)))] == [True, False]
