"""The arithmetic of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.reports.figures import figure, median_interval, paired_ratio, spread


def test_ratios_are_taken_round_by_round() -> None:
    """The second round was disturbed for both: its ratio counts as any other."""
    assert paired_ratio([50, 5, 60], [100, 10, 100]) == (0.5, 0.5, 0.6)


def test_ratio_needs_the_same_rounds() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_ratio([1, 2], [1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345.6, "12,346"),
        (123.4, "123"),
        (1.2345, "1.23"),
        (0.0012345, "0.00123"),
        (0.0, "0"),
        (50, "50"),
        (-2.5, "-2.50"),
    ],
)
def test_figure(value: float, text: str) -> None:
    assert figure(value) == text


def test_spread() -> None:
    assert spread([3.0, 1.0, 2.0]) == "1.00 – 3.00"
    assert spread([2, 2]) == "2"


def test_the_interval_of_a_median() -> None:
    """For a normal sample it is 2 × 1.96 × 1.2533 σ/√n wide (the median's standard error), here 0.025."""
    sample = np.random.default_rng(1).normal(1, 0.1, 400)
    found = median_interval([*sample])
    assert found.low < np.median(sample) < found.high
    assert found.width == pytest.approx(0.025, rel=0.3)
    assert median_interval([*sample]) == found


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert median_interval([0.98] * 10) == (0.98, 0.98)
