"""The last hour of model versions, in rings of a bounded size."""

from __future__ import annotations

from math import isnan

import pytest

from msx_frontend.metrics.history import ALL, FIELDS, MOST_BYTES, MOST_SERIES, POINTS, RecentHistory, Totals
from msx_frontend.metrics.percentiles import percentile, upper_bound
from msx_frontend.metrics.traces import Traces

BOUNDS = (0.1, 0.2)


class Version:
    def __init__(self, name: str = "m") -> None:
        self.labels = (name, "1.0")
        self.traces = Traces(*self.labels)
        self.now = Totals(0, 0, 0, (0, 0, 0), 0, 0, 0)
        self.levels: dict[str, float] = {"msx_workers_ready": 1}

    def totals(self) -> Totals:
        return self.now

    def gauges(self) -> dict[str, float]:
        return self.levels

    def asked(self, *times: int, failed: int = 0) -> None:
        added = [a + b for a, b in zip(self.now.times, times, strict=True)]
        requests = self.now.requests + sum(times)
        self.now = Totals(requests, 0, self.now.failed + failed, tuple(added), 0, 0, self.now.tokens + 50)


def values(history: RecentHistory, field: str, name: str = "m") -> list[float | None]:
    labels = ALL if name == "" else (name, "1.0")
    return history.series[labels].points(history.number)[field]


def test_a_point_is_what_came_since_the_last_one() -> None:
    history, version = RecentHistory(BOUNDS), Version()
    for _ in range(2):
        version.asked(2, 2, 0, failed=1)
        history.sample([version], 10)
    for field, value in {"requests": 4, "failed": 1, "p50": 100, "p99": 198, "tokens": 5, "workers": 1}.items():
        assert values(history, field)[-2:] == [value, value], field
        assert values(history, field)[:-2] == [None] * (POINTS - 2)
    assert values(history, "batch")[-1] is None


def test_versions_together() -> None:
    history, one, two = RecentHistory(BOUNDS), Version("a"), Version("b")
    one.asked(3, 0, 0)
    two.asked(0, 1, 0)
    history.sample([one, two])
    assert (values(history, "requests", "")[-1], values(history, "workers", "")[-1]) == (4, 2)
    assert values(history, "p99", "")[-1] == pytest.approx(196)


def test_what_is_older_than_an_hour_is_written_over() -> None:
    history, version = RecentHistory(BOUNDS), Version()
    version.asked(1, 0, 0)
    for _ in range(POINTS + 5):
        history.sample([version])
    assert values(history, "requests") == [0] * POINTS


def test_a_version_that_nobody_asks_has_no_ring() -> None:
    history = RecentHistory(BOUNDS)
    history.sample([Version()])
    assert list(history.series) == [ALL]


def test_rings_are_bounded() -> None:
    history = RecentHistory(BOUNDS)
    versions = [Version(f"m{number}") for number in range(MOST_SERIES + 20)]
    for version in versions:
        version.asked(1, 0, 0)
        history.sample([version])
    assert len(history.series) == MOST_SERIES
    assert history.size <= MOST_BYTES
    assert versions[0].labels not in history.series
    assert versions[-1].labels in history.series
    assert ALL in history.series


def test_a_version_that_is_gone_has_a_gap_and_then_no_ring() -> None:
    history, version = RecentHistory(BOUNDS), Version()
    version.asked(1, 0, 0)
    history.sample([version])
    history.sample([])
    history.sample([version])
    assert values(history, "requests")[-3:] == [1, None, 1]
    for _ in range(POINTS):
        history.sample([])
    assert list(history.series) == [ALL]


def test_what_is_slow_follows_the_last_minute() -> None:
    history, version = RecentHistory(BOUNDS), Version()
    version.asked(100, 0, 0)
    history.sample([version])
    assert version.traces.bound == 0.1
    version.asked(0, 50, 0)
    history.sample([version])
    assert version.traces.bound == 0.2
    for _ in range(6):
        history.sample([version])
    assert version.traces.bound == 0


def test_percentiles() -> None:
    assert isnan(percentile(BOUNDS, (0, 0, 0), 0.5))
    assert percentile(BOUNDS, (10, 0, 0), 0.5) == pytest.approx(0.05)
    assert percentile(BOUNDS, (5, 5, 0), 0.75) == pytest.approx(0.15)
    assert percentile(BOUNDS, (0, 0, 3), 0.5) == upper_bound(BOUNDS, (0, 0, 3), 0.5) == 0.2
    assert upper_bound(BOUNDS, (0, 0, 0), 0.5) == 0
    assert len(FIELDS) == len(set(FIELDS))
