"""Counts of a server that another one goes on with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msx_frontend.batches.figures import BatchFigures
from msx_frontend.deferred.figures import JobFigures
from msx_frontend.metrics import ServerMetrics
from msx_frontend.metrics import handed_counts as module
from msx_frontend.metrics.declared import DeclaredMetric, Kind, MetricsSpec
from msx_frontend.metrics.handed_counts import ToldCounts
from msx_frontend.metrics.observer import ServerFigures
from msx_protocol import MetricInfo
from tests.frontend.metrics.test_handlers import of, version
from tests.frontend.metrics.test_server import exposed, sample

FORMS = MetricInfo("calls", "counter"), MetricInfo("t", "histogram", "", (1.0, 5.0)), MetricInfo("slots", "gauge")


def busy(metrics: ServerMetrics) -> None:
    """It counts requests, and what a handler reports."""
    model = version(metrics, "1.0", *FORMS)
    model.answered(200)
    model.restarts.inc()
    model.batch(4, 0.5)
    metrics.replied(404)
    model.handler_samples([sample("calls", value=2), sample("t", "histogram", 3), sample("slots", "gauge", 7)], 9000)


def tell(told: ToldCounts, metrics: ServerMetrics) -> int:
    """Everything that has not been told; returns in how many messages."""
    messages = 0
    while message := told.next():
        metrics.go_on_with(json.loads(json.dumps(message)))
        messages += 1
    return messages


def counts(metrics: ServerMetrics) -> dict[Any, float]:
    """All but gauges, and what is of the process."""
    return {
        key: value
        for key, value in exposed(metrics).items()
        if not key[0].startswith(("process_", "slots")) and not key[0].endswith("_created") and value
    }


def test_another_server_goes_on_with_all_counts() -> None:
    before, after = ServerMetrics(), ServerMetrics()
    busy(before)
    told = ToldCounts(before)
    assert tell(told, after) == 1
    version(after, "1.0", *FORMS)
    assert counts(after) == counts(before)
    busy(before)
    busy(after)
    assert tell(told, after) == 1
    once = ServerMetrics()
    for _ in range(3):
        busy(once)
    assert counts(after) == counts(once)
    assert tell(told, after) == 0


def test_a_message_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 300)
    before, after = ServerMetrics(), ServerMetrics()
    busy(before)
    version(after, "1.0", *FORMS)
    assert tell(ToldCounts(before), after) > 2
    assert counts(after) == counts(before)


def test_handlers_series_go_with_their_version() -> None:
    before, after = ServerMetrics(), ServerMetrics()
    busy(before)
    tell(ToldCounts(before), after)
    model = version(after, "1.0", *FORMS)
    assert of(after, "calls") == of(before, "calls") != {}
    model.close()
    assert of(after, "calls") == {}
    busy(before)
    tell(ToldCounts(before), after)
    assert of(after, "calls") == {}


def test_a_series_that_was_made_anew_counts_anew() -> None:
    before, after = ServerMetrics(), ServerMetrics()
    model, told = version(before, "1.0", *FORMS), ToldCounts(before)
    version(after, "1.0", *FORMS)
    model.handler_samples([sample("calls", value=5)], 9000)
    tell(told, after)
    model.close()
    version(before, "1.0", *FORMS).handler_samples([sample("calls", value=2)], 9001)
    tell(told, after)
    assert [*of(after, "calls").values()] == [7]


def test_other_buckets_begin_anew(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "msx.metrics")
    after = ServerMetrics()
    version(after, "1.0")
    after.go_on_with([{"name": "msx_batch_size", "labels": ["m", "1.0"], "counts": [1.0, 1.0]}])
    after.go_on_with([{"name": "msx_of_a_later_release", "labels": [], "counts": [1.0]}])
    assert "the metric msx_batch_size begins anew" in caplog.text
    with pytest.raises(ValueError, match="counts"):
        after.go_on_with([{"name": "msx_batch_size", "labels": [], "counts": 5}])


def test_another_kind_of_metric_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "msx.metrics")
    before, after = ServerMetrics(), ServerMetrics()
    busy(before)
    version(after, "1.0", MetricInfo("calls", "gauge")).handler_samples([sample("calls", "gauge", 1)], 9000)
    tell(ToldCounts(before), after)
    assert "the metric calls begins anew: it is a gauge" in caplog.text


def declaring(kind: Kind, *dimensions: str, buckets: tuple[float, ...] | None = None) -> ServerMetrics:
    """A server whose metrics_config declares one metric of its own, `Mine`, and one of handlers, `theirs`."""
    mine, theirs = (DeclaredMetric(name, "Count", dimensions, buckets=buckets) for name in ("Mine", "theirs"))
    metrics = ServerMetrics("prometheus", MetricsSpec(((kind, mine),), ((kind, theirs),)))
    metrics.ts_series("Mine").add(3)
    return metrics


def mine(metrics: ServerMetrics) -> dict[Any, float]:
    return {key: value for key, value in exposed(metrics).items() if key[0].startswith("Mine")}


@pytest.mark.parametrize(
    ("kind", "dimensions", "buckets"),
    [
        ("counter", ["Level", "Zone"], None),
        ("counter", ["Zone"], None),
        ("histogram", ["Level"], (1.0, 9.0)),
        ("histogram", ["Level", "Zone"], (1.0, 5.0)),
    ],
)
def test_a_metric_that_is_declared_otherwise_now_begins_anew(
    kind: Kind, dimensions: list[str], buckets: tuple[float, ...] | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A changed metrics_config is what `msx-serve restart` is for."""
    caplog.set_level("INFO", "msx.metrics")
    before = declaring(kind, "Level", buckets=(1.0, 5.0) if buckets else None)
    after = declaring(kind, *dimensions, buckets=buckets)
    alone, told = mine(after), ToldCounts(before)
    tell(told, after)
    before.ts_series("Mine").add(3)
    tell(told, after)
    assert mine(after) == alone
    assert caplog.text.count("the metric Mine begins anew: its labels or buckets are others now") == 1


def test_declared_buckets_of_handlers_are_those_of_now(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "msx.metrics")
    before, after = (declaring("histogram", "ModelName", buckets=(1.0, high)) for high in (5.0, 9.0))
    version(before, "1.0").handler_samples([sample("theirs", "histogram", 3)], 9000)
    model = version(after, "1.0")
    tell(ToldCounts(before), after)
    model.handler_samples([sample("theirs", "histogram", 3)], 9000)
    assert of(after, "theirs_bucket") == {"ModelName=m,le=1.0": 0, "ModelName=m,le=9.0": 1, "ModelName=m,le=+Inf": 1}
    assert "the metric theirs begins anew: its buckets are others now" in caplog.text


def figured(done: int) -> ServerMetrics:
    metrics = ServerMetrics()
    metrics.jobs.show(lambda: JobFigures(0, 0, {"done": done}, 0.0, 0, 0, {"delivered": 2 * done}))
    metrics.batches.show(lambda: BatchFigures({}, 0, 0, {"done": 3 * done}, 0, 0))
    metrics.show(ServerFigures(shed=lambda: 4 * done, spans=lambda: {"exported": 5 * done, "failed": 0}))
    return metrics


def test_counts_that_other_parts_keep_go_over() -> None:
    first, second, third = figured(1), figured(10), figured(100)
    for before, after in ((first, second), (second, third)):
        told = ToldCounts(before)
        assert tell(told, after) == 1
        assert tell(told, after) == 0
    shown = {name: value for (name, *_), value in exposed(third).items() if value}
    counted = ("jobs_ended", "callbacks", "batch_lines_ended", "connections_shed", "spans")
    assert [shown[f"msx_{name}_total"] for name in counted] == [111, 222, 333, 444, 555]
