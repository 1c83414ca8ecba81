"""Results of the benchmark of jobs from its figures."""

from __future__ import annotations

from benchmarks.jobs.backlog import SAMPLE
from benchmarks.jobs.jobs import Round, tell_beside, tell_flood
from benchmarks.load.result import Result
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report


def test_what_is_told() -> None:
    report = Report("jobs", "command", machine())
    rounds = [Round(Result(1000, 1_000_000, 2000, 9000, 0), 500.0, 3000.0)] * 3
    tell_flood(report, rounds)
    tell_beside(report, {1: [(20_000, 40_000), (20_000, 50_000), (40_000, 60_000)]})
    told = str(report)
    for row in ("accepted a second", "1,000", "9.00", "3,000", "50.0", "2.00"):
        assert row in told, told


def test_the_metrics_that_are_read() -> None:
    page = 'msx_jobs{state="queued",} 3.0\nmsx_jobs_ended_total{state="done",} 4.0\nmsx_jobs_oldest_seconds 1.0\n'
    assert SAMPLE.findall(page) == [("msx_jobs", "3.0"), ("msx_jobs_ended_total", "4.0")]
