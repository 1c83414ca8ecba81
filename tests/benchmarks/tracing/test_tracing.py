"""The report of the benchmark of traces."""

from __future__ import annotations

import os
import threading
import urllib.request
from multiprocessing.connection import Connection

import pytest

from benchmarks.load import collector as spans
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


def ends(told: Connection) -> None:
    os._exit(1)


def says_nothing(told: Connection) -> None:
    threading.Event().wait()


def test_a_collector_that_ends_is_noticed() -> None:
    with pytest.raises(RuntimeError, match="ended before it listened"), collector(ends):
        pass


def test_a_collector_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "START_LIMIT", 0.01)
    with pytest.raises(RuntimeError, match=r"did not listen within 0\.01 s"), collector(says_nothing):
        pass
