"""Whose series they are, what they are called, and when they go."""

from __future__ import annotations

import asyncio

import pytest

from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.declared import DeclaredMetric, MetricsSpec
from msx_frontend.metrics.handlers import MOST_METRICS
from msx_protocol import MetricInfo, MetricSample
from tests.frontend.metrics.test_server import declared, exposed, sample

Seen = dict[tuple[str, str], float]


def page(metrics: ServerMetrics) -> str:
    return asyncio.run(metrics.expose()).decode()


def of(metrics: ServerMetrics, name: str) -> dict[str, float]:
    """Labels to value."""
    return {labels: value for (found, labels), value in exposed(metrics).items() if found == name}


def version(metrics: ServerMetrics, number: str = "1.0", *forms: MetricInfo, model: str = "m") -> ModelMetrics:
    made = ModelMetrics(metrics, model, number)
    made.handler_forms(list(forms))
    return made


def gauge(name: str, value: float, **labels: str) -> list[MetricSample]:
    return [sample(name, "gauge", value, **labels)]


SLOTS = MetricInfo("slots", "gauge")


def test_each_worker_has_its_own_gauge_and_it_ends_with_the_worker() -> None:
    metrics = ServerMetrics()
    model = version(metrics, "1.0", SLOTS)
    model.handler_samples(gauge("slots", 1), 9000)
    model.handler_samples(gauge("slots", 2), 9001)
    labels = "ModelName=m,ModelVersion=1.0,WorkerName=W-{}-m_1.0"
    assert of(metrics, "slots") == {labels.format(9000): 1, labels.format(9001): 2}
    model.worker_ended(9000)
    model.handler_samples(gauge("slots", 3), None)  # read after its end
    assert of(metrics, "slots") == {labels.format(9001): 2}
    model.close()
    model.worker_ended(9001)
    assert of(metrics, "slots") == {}
    assert "slots" not in page(metrics), "not even its help"


def test_counters_and_histograms_of_workers_add_up_and_outlive_them() -> None:
    metrics = ServerMetrics()
    model = version(metrics, "1.0", MetricInfo("calls", "counter"), MetricInfo("t", "histogram"))
    for worker in (9000, 9001):
        model.handler_samples([sample("calls", value=2), sample("t", "histogram", 40)], worker)
    model.worker_ended(9000)
    assert of(metrics, "calls") == {"ModelName=m,ModelVersion=1.0": 4}
    assert of(metrics, "t_sum") == {"ModelName=m,ModelVersion=1.0": 80}
    model.close()
    assert not {name for name, _ in exposed(metrics)} & {"calls", "t_sum", "t_bucket"}


def test_versions_have_a_label() -> None:
    metrics = ServerMetrics()
    first, second = (version(metrics, number, MetricInfo("calls", "counter")) for number in ("1.0", "2.0"))
    first.handler_samples([sample("calls")], 9000)
    second.handler_samples([sample("calls", value=5)], 9001)
    assert of(metrics, "calls") == {"ModelName=m,ModelVersion=1.0": 1, "ModelName=m,ModelVersion=2.0": 5}
    first.close()
    assert of(metrics, "calls") == {"ModelName=m,ModelVersion=2.0": 5}


def test_torchserves_calls_keep_their_labels_and_go_with_the_last_version() -> None:
    metrics = ServerMetrics()
    versions = [version(metrics, number) for number in ("1.0", "2.0")]
    for model in versions:
        model.handler_samples([*gauge("Work", 2, Level="Model"), sample("Calls", Level="Model")], 9000)
    versions[0].worker_ended(9000)
    versions[0].close()
    assert of(metrics, "Work") == {"Level=Model,ModelName=m": 2}
    assert of(metrics, "Calls") == {"Level=Model,ModelName=m": 2}
    versions[1].close()
    assert not {name for name, _ in exposed(metrics)} & {"Work", "Calls"}


def test_what_comes_after_the_version_is_gone_is_not_taken() -> None:
    metrics = ServerMetrics()
    model = version(metrics)
    model.close()
    model.handler_samples([sample("Calls")], None)
    assert of(metrics, "Calls") == {}


def test_a_version_that_takes_the_place_of_one_that_still_leaves() -> None:
    metrics = ServerMetrics()
    old, new = version(metrics), version(metrics)
    for model in (old, new):
        model.handler_samples([sample("Calls")], 9000)
    old.close()
    assert of(metrics, "Calls") == {"ModelName=m": 2}


def test_a_name_is_free_for_another_form_when_its_models_are_gone() -> None:
    metrics = ServerMetrics()
    first = version(metrics)
    first.handler_samples([sample("Calls"), *(sample(f"n{n}") for n in range(MOST_METRICS))], 9000)
    first.close()
    version(metrics).handler_samples(gauge("Calls", 7, colour="red"), 9000)
    assert of(metrics, "Calls") == {"ModelName=m,colour=red": 7}


def test_a_declared_metric_stays_and_has_no_series_without_models() -> None:
    metrics = ServerMetrics("prometheus", declared("Tokens", "counter", "ModelName"))
    model = version(metrics)
    model.handler_samples([sample("Tokens")], 9000)
    model.close()
    assert of(metrics, "Tokens") == {}
    assert "# TYPE Tokens counter" in page(metrics)


def test_the_server_fills_in_declared_dimensions_of_its_own() -> None:
    """So a gauge of TorchServe's calls, of which the last value counts, is told apart by worker."""
    metrics = ServerMetrics("prometheus", declared("Work", "gauge", "WorkerName", "ModelVersion"))
    model = version(metrics)
    model.handler_samples(gauge("Work", 1, ModelName="m"), 9000)
    model.handler_samples(gauge("Work", 2, ModelName="m"), 9001)
    model.worker_ended(9000)
    assert of(metrics, "Work") == {"ModelVersion=1.0,WorkerName=W-9001-m_1.0": 2}


def test_a_worker_label_of_the_handlers_own_is_the_versions() -> None:
    metrics = ServerMetrics()
    model = version(metrics, "1.0", SLOTS)
    model.handler_samples(gauge("slots", 1, WorkerName="mine"), 9000)
    model.worker_ended(9000)
    assert of(metrics, "slots") == {"ModelName=m,ModelVersion=1.0,WorkerName=mine": 1}
    model.close()
    assert of(metrics, "slots") == {}


def bounds(metrics: ServerMetrics, name: str) -> list[str]:
    return [labels.split("le=")[1] for labels in of(metrics, f"{name}_bucket")]


@pytest.mark.parametrize(
    ("unit", "last"),
    [("Milliseconds", 1e5), ("Seconds", 1e3), ("Percent", 100), ("Bytes", 1e9), ("Count", 1e6), ("tokens", 1e6)],
)
def test_buckets_reach_as_far_as_values_of_the_unit(unit: str, last: float) -> None:
    metrics = ServerMetrics()
    version(metrics).handler_samples([MetricSample("t", "histogram", unit, 1.0, [])], 9000)
    found = [float(bound.split(",")[0]) for bound in bounds(metrics, "t")]
    assert found == sorted(found)
    assert found[:14] == [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
    assert found[-2] == last


def test_buckets_and_help_of_the_handlers_own() -> None:
    metrics = ServerMetrics()
    model = version(metrics, "1.0", MetricInfo("t", "histogram", "How long\nit took", (1.0, 200.0)))
    model.handler_samples([sample("t", "histogram", 150)], 9000)
    assert of(metrics, "t_bucket") == {
        f"ModelName=m,ModelVersion=1.0,le={bound}": count for bound, count in (("1.0", 0), ("200.0", 1), ("+Inf", 1))
    }
    assert "# HELP t How long\\nit took\n# TYPE t histogram\n" in page(metrics)


def counted(name: str, counts: tuple[int, ...], total: float) -> MetricSample:
    return MetricSample(name, "histogram", "Seconds", total, [], counts=counts)


def test_counts_of_buckets_are_added() -> None:
    metrics = ServerMetrics()
    model = version(metrics, "1.0", MetricInfo("t", "histogram", "", (1.0, 2.0)))
    for worker in (9000, 9001):
        model.handler_samples([counted("t", (1, 0, 2), 7.5), sample("t", "histogram", 1.5)], worker)
    assert [value for _, value in sorted(of(metrics, "t_bucket").items())] == [8, 2, 4]
    assert of(metrics, "t_sum") == {"ModelName=m,ModelVersion=1.0": 18}


def test_each_version_has_its_own_buckets() -> None:
    metrics = ServerMetrics()
    for number, buckets in (("1.0", (1.0,)), ("2.0", (1.0, 2.0))):
        counts = (*(0 for _ in buckets), 1)
        version(metrics, number, MetricInfo("t", "histogram", "", buckets)).handler_samples(
            [counted("t", counts, 3)], 9000
        )
    assert [bound.split(",")[0] for bound in bounds(metrics, "t")] == ["1.0", "+Inf", "1.0", "2.0", "+Inf"]


def test_declared_buckets_take_counts_by_their_upper_bounds() -> None:
    one = DeclaredMetric("t", "s", ("ModelName",), "", (2.0,))
    metrics = ServerMetrics("prometheus", MetricsSpec((), (("histogram", one),)))
    version(metrics, "1.0", MetricInfo("t", "histogram", "", (1.0, 2.0, 3.0))).handler_samples(
        [counted("t", (1, 1, 1, 1), 7)], 9000
    )
    assert of(metrics, "t_bucket") == {"ModelName=m,le=2.0": 2, "ModelName=m,le=+Inf": 4}


@pytest.mark.parametrize("counts", [(1,), (1, 1, 1), (2, -1)])
def test_counts_that_do_not_fit_are_left_out(counts: tuple[int, ...], caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServerMetrics()
    model = version(metrics, "1.0", MetricInfo("t", "histogram", "", (1.0,)))
    model.handler_samples([counted("t", counts, 1)], 9000)
    assert all(value == 0 for value in of(metrics, "t_bucket").values())
    assert "it has 1 buckets, which the counts" in caplog.text


def test_counts_for_a_gauge_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    metrics = ServerMetrics()
    sent = MetricSample("t", "gauge", "", 1, [], counts=(1,))
    version(metrics).handler_samples([sent], 9000)
    assert "it is a gauge, which takes no counts of buckets" in caplog.text


def test_buckets_and_help_that_are_declared() -> None:
    one = DeclaredMetric("t", "ms", ("ModelName",), "Lookup", (1.0, float("inf")))
    metrics = ServerMetrics("prometheus", MetricsSpec((), (("histogram", one),)))
    version(metrics, "1.0", MetricInfo("t", "histogram", "other", (5.0,))).handler_samples(
        [sample("t", "histogram", 150)], 9000
    )
    assert of(metrics, "t_bucket") == {"ModelName=m,le=1.0": 0, "ModelName=m,le=+Inf": 1}
    assert "# HELP t Lookup\n" in page(metrics)


def test_the_load_time_of_a_worker_goes_with_it() -> None:
    metrics = ServerMetrics()
    model = version(metrics)
    for worker in (9000, 9001):
        model.worker_loaded(worker, 0.5)
    model.worker_ended(9000)
    assert of(metrics, "WorkerLoadTime") == {"Level=Host,WorkerName=W-9001-m_1.0": 500}
