"""The report of the benchmark of traces."""

from __future__ import annotations

import urllib.request

import pytest

from benchmarks.load.collector import collector
from benchmarks.reports.machine import machine
from benchmarks.reports.table import Report
from benchmarks.tracing.tracing import ALL, NONE, OFF, TENTH, tell


@pytest.mark.parametrize(("tenth", "met"), [(95.0, True), (80.0, False)])
def test_what_is_told(tenth: float, met: bool) -> None:
    report = Report("tracing", "command", machine())
    tell(report, {OFF: [100.0], NONE: [99.0], TENTH: [tenth], ALL: [50.0]})
    assert [row[0] for row in report.tables[0].rows] == [OFF, NONE, TENTH, ALL]
    [target] = report.targets
    assert target.met is met


def test_the_collector_takes_all() -> None:
    with collector() as endpoint:
        request = urllib.request.Request(f"{endpoint}/v1/traces", data=b"spans", method="POST")
        with urllib.request.urlopen(request) as reply:
            assert reply.status == 200
