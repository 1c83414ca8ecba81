"""Results of the console's benchmark from its figures."""

from __future__ import annotations

import pytest

from benchmarks.console.console import tell
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report


@pytest.mark.parametrize(
    ("beside", "growth", "met"),
    [([1000, 2080], 4.9, [True, True]), ([1100, 2200], 5.1, [False, False])],
)
def test_the_promises(beside: list[int], growth: float, met: list[bool]) -> None:
    report = Report("console", "command", machine())
    tell(report, 10, [1000, 2000], beside, growth)
    assert [target.met for target in report.targets] == met
    assert "| 10" in str(report)
    assert "1.00 – 2.00" in str(report)
