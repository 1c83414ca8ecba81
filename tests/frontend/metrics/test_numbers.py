"""Told exactly as prometheus_client tells its own."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram

from msx_frontend.metrics.exposition import exposition
from msx_frontend.metrics.numbers import CounterFamily, HistogramFamily
from msx_frontend.metrics.numbers import Histogram as PlainHistogram

BUCKETS = (0.5, 1, 2.5, 10)
VALUES = (0, 0.5, 0.50001, 1, 2, 10, 11.5, 1e9)


@pytest.mark.parametrize("labels", [(), ("model", "version")])
def test_histograms(labels: tuple[str, ...]) -> None:
    registries = theirs, ours = CollectorRegistry(auto_describe=True), CollectorRegistry(auto_describe=True)
    their_own = Histogram("h", "Text", labels, buckets=BUCKETS, registry=theirs)
    own = HistogramFamily("h", "Text", labels, BUCKETS, ours)
    assert exposition(ours) == exposition(theirs), "before any child"
    for version in "12":
        values = [f"m{version}" if name == "model" else version for name in labels]
        their_child, child = their_own.labels(*values) if values else their_own, own.labels(*values)
        assert exposition(ours) == exposition(theirs), "before any value"
        for value in VALUES:
            their_child.observe(value)
            child.observe(value)
    assert exposition(ours) == exposition(theirs)
    some = [exposition(registry.restricted_registry(["h_sum"])) for registry in registries]
    assert some[0] == some[1] != b""


@pytest.mark.parametrize("count", [0, 1, 3, len(VALUES)])
def test_many_at_once(count: int) -> None:
    one_by_one, at_once = PlainHistogram(BUCKETS), PlainHistogram(BUCKETS)
    values = [*reversed(VALUES)][:count]
    for value in values:
        one_by_one.observe(value)
    at_once.observe_all(values)
    assert (at_once.counts, at_once.sum) == (one_by_one.counts, one_by_one.sum)


def test_counters() -> None:
    theirs, ours = CollectorRegistry(auto_describe=True), CollectorRegistry(auto_describe=True)
    for family in (Counter("c", "Text", ("code",), registry=theirs), CounterFamily("c", "Text", ("code",), ours)):
        family.labels("200").inc()
        family.labels("200").inc(2.5)
        family.labels("404").inc()
    assert exposition(ours) == exposition(theirs)


def test_a_name_is_used_once() -> None:
    registry = CollectorRegistry(auto_describe=True)
    HistogramFamily("x", "Text", (), BUCKETS, registry)
    with pytest.raises(ValueError, match="x"):
        CounterFamily("x_sum", "Text", (), registry)
    with pytest.raises(ValueError, match="x"):
        HistogramFamily("x", "Text", (), BUCKETS, registry)


def test_what_is_asked_for_again_counts_on() -> None:
    family = CounterFamily("c", "Text", ("model",), None)
    family.labels("m").inc()
    family.labels("m").inc()
    assert family.labels("m").value == 2
