from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from msx_core.batch import current_request_ids
from msx_core.metrics.descriptors import LONGEST_HELP, MOST_FORMS, MetricDescriptor
from msx_core.metrics.samples import Sample
from msx_sdk.metrics import Metric, Metrics


def only(metrics: Metrics) -> Sample:
    (sample,) = metrics.take()
    return sample


def test_torchserves_calls_carry_model_and_level() -> None:
    metrics = Metrics("m")
    metrics.add_counter("Calls", 2)
    assert only(metrics) == Sample("Calls", "counter", "Count", 2.0, (("ModelName", "m"), ("Level", "Model")))


@pytest.mark.parametrize(
    ("call", "kind", "unit"),
    [
        (lambda m: m.add_time("x", 1), "gauge", "Milliseconds"),
        (lambda m: m.add_time("x", 1, unit="s"), "gauge", "Seconds"),
        (lambda m: m.add_time("x", 1, metric_type="histogram"), "histogram", "Milliseconds"),
        (lambda m: m.add_size("x", 1), "gauge", "Megabytes"),
        (lambda m: m.add_size("x", 1, unit="B"), "gauge", "Bytes"),
        (lambda m: m.add_percent("x", 1), "gauge", "Percent"),
        (lambda m: m.add_metric("x", 1, "tokens"), "counter", "tokens"),
        (lambda m: m.add_metric("x", 1, ""), "counter", "unit"),
    ],
)
def test_kinds_and_units(call: Any, kind: str, unit: str) -> None:
    metrics = Metrics("m")
    call(metrics)
    sample = only(metrics)
    assert (sample.kind, sample.unit, sample.value) == (kind, unit, 1.0)


def test_dimensions_are_labels_and_may_replace_ours() -> None:
    metrics = Metrics("m")
    metrics.add_counter("x", 1, dimensions={"Level": "Host", "shard": "3"})
    assert dict(only(metrics).labels) == {"ModelName": "m", "Level": "Host", "shard": "3"}


class MetricTypes(Enum):
    GAUGE = "gauge"


def test_dimensions_and_types_as_torchserve_has_them() -> None:
    metrics = Metrics("m")
    dimensions = [SimpleNamespace(name="shard", value="3")]
    metrics.add_time("x", 1, None, "ms", dimensions, MetricTypes.GAUGE)  # type: ignore[arg-type]
    sample = only(metrics)
    assert sample.kind == "gauge"
    assert dict(sample.labels) == {"ModelName": "m", "Level": "Model", "shard": "3"}


def test_the_cache_of_torchserve() -> None:
    metrics = Metrics("m")
    made = metrics.add_metric_to_cache("Size", "MB", ["ModelName", "Level"], MetricTypes.GAUGE)  # type: ignore[arg-type]
    made.add_or_update(2.5, ["m", "Model"])
    assert only(metrics) == Sample("Size", "gauge", "Megabytes", 2.5, (("ModelName", "m"), ("Level", "Model")))
    assert metrics.get_metric("Size", "gauge") is made
    assert metrics.add_metric_to_cache("Size", "MB", ["ModelName", "Level"], "gauge") is made
    made.update(1, "request", [SimpleNamespace(name="a", value="b")])
    assert only(metrics).labels == (("a", "b"),)
    metrics.add_metric_to_cache("Calls", "count").add_or_update(1)
    assert only(metrics) == Sample("Calls", "counter", "Count", 1.0, ())
    with pytest.raises(KeyError, match="the counter 'Size' does not exist"):
        metrics.get_metric("Size")


def test_torchserves_own_metrics_are_in_the_cache() -> None:
    metrics = Metrics("m")
    metrics.get_metric("HandlerTime", "gauge").add_or_update(1.5, ["m", "Model"])
    assert only(metrics) == Sample(
        "HandlerTime", "gauge", "Milliseconds", 1.5, (("ModelName", "m"), ("Level", "Model"))
    )
    assert metrics.get_metric("PredictionTime", "gauge").dimension_names == ["ModelName", "Level"]
    metrics.add_counter("Calls", 1)
    assert metrics.get_metric("Calls").dimension_names == ["ModelName", "Level"]


def test_a_metric_that_differs_takes_the_place_of_the_one_before(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics("m")
    metrics.add_metric_to_cache("Size", "MB", ["a"])
    other = metrics.add_metric_to_cache("Size", "MB", ["b"])
    assert metrics.get_metric("Size") is other
    assert "counter Size is replaced: it had the dimensions ['a']" in caplog.text


def test_a_metric_never_fails_a_prediction(caplog: pytest.LogCaptureFixture) -> None:
    """TorchServe's calls log what is wrong with an update, and leave it out."""
    metrics = Metrics("m")
    cached = metrics.add_metric_to_cache("Size", "MB", ["a", "b"])
    cached.add_or_update(1, ["x"])
    cached.add_or_update(-1, ["x", "y"])
    metrics.add_counter("Calls", -2)
    assert metrics.take() == []
    assert "metric Size has the dimensions ['a', 'b'], got ['x']" in caplog.text
    assert "counter Size cannot go down: -1 is left out" in caplog.text
    assert "counter Calls cannot go down: -2 is left out" in caplog.text


def test_samples_name_their_requests() -> None:
    metrics = Metrics("m")
    token = current_request_ids.set("a,b")
    try:
        metrics.add_counter("all", 1)
        metrics.add_counter("second", 1, 1)
        metrics.add_counter("beyond", 1, 7)
        metrics.add_metric_to_cache("named", "count").add_or_update(1, request_id="c")
        metrics.prediction_time(0.5, ["d", "e"])
    finally:
        current_request_ids.reset(token)
    samples = metrics.take()
    assert [sample.request_id for sample in samples] == ["a,b", "b", "a,b", "c", "d,e"]
    assert (samples[-1].name, samples[-1].value, samples[-1].unit) == ("PredictionTime", 500.0, "Milliseconds")


@pytest.mark.parametrize(("value", "added"), [(72, 72.0), (0.5, 0.5), ("bad png", 1.0)])
def test_errors_are_counted(value: float | str, added: float, caplog: pytest.LogCaptureFixture) -> None:
    """Under one label, whatever the value; a text is in the log."""
    metrics = Metrics("m")
    metrics.add_error("Decode", value, {"Codec": "png"})
    sample = only(metrics)
    assert (sample.kind, sample.unit, sample.value) == ("counter", "unit", added)
    assert dict(sample.labels) == {"Level": "Error", "Codec": "png"}
    assert caplog.messages == (["Decode: bad png"] if isinstance(value, str) else [])
    assert metrics.get_metric("Decode").dimension_names == ["Codec", "Level"]


def test_errors_cannot_be_taken_back(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics("m")
    metrics.add_error("Decode", -1)
    assert not metrics.take()
    assert caplog.messages == ["counter Decode cannot go down: -1 is left out"]


def test_typed_metrics_take_their_labels_by_name() -> None:
    metrics = Metrics("m")
    metrics.counter("tokens", labels=("kind", "lang")).update(3, lang="en", kind="prompt")
    assert only(metrics) == Sample("tokens", "counter", "Count", 3.0, (("kind", "prompt"), ("lang", "en")))
    metrics.gauge("slots").update(2)
    metrics.histogram("step").update(0.5)
    assert [(s.name, s.kind, s.unit) for s in metrics.take()] == [
        ("slots", "gauge", "Count"),
        ("step", "histogram", "Milliseconds"),
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.counter("c", labels=("a",)).update(1), r"metric c has the labels \['a'\], got \[\]"),
        (lambda m: m.counter("c").update(1, b="x"), r"metric c has the labels \[\], got \['b'\]"),
        (lambda m: m.counter("c").update(-1), "counter c cannot go down: -1"),
        (lambda m: m.add_time("t", 1, unit="h"), "unit of the time 't' is 'ms' or 's', not 'h'"),
        (lambda m: m.add_size("s", 1, unit="TB"), "unit of the size 's' is"),
        (lambda m: m.add_metric("x", 1, metric_type="summary"), "unknown type 'summary'"),
    ],
)
def test_misuse_says_what_was_expected(call: Any, message: str) -> None:
    metrics = Metrics("m")
    with pytest.raises(ValueError, match=message):
        call(metrics)
    assert metrics.take() == []


def test_what_the_wire_cannot_carry_becomes_text() -> None:
    metrics = Metrics("m")
    name: Any = 5
    metrics.add_counter(name, 1, dimensions={"n": name})
    sample = only(metrics)
    assert sample.name == "5"
    assert ("n", "5") in sample.labels


def test_samples_are_taken_once_and_their_number_is_bounded() -> None:
    metrics = Metrics("m")
    for _ in range(metrics.LIMIT + 3):
        metrics.add_counter("x", 1)
    assert metrics.dropped == 3
    assert len(metrics.take()) == metrics.LIMIT
    assert metrics.take() == []


def test_of_many_calls_the_last_one_is_told() -> None:
    metrics = Metrics("m")
    for n in range(20_000):
        metrics.prediction_time(n, [str(n)])
    (sample,) = metrics.take()
    assert (sample.value, sample.request_id) == (19_999_000.0, "19999")
    assert metrics.take() == []


def test_for_logs_each_call_is_told() -> None:
    metrics = Metrics("m")
    metrics.every_call = True
    for n in range(3):
        metrics.prediction_time(n, [str(n)])
    assert [sample.request_id for sample in metrics.take()] == ["0", "1", "2"]
    assert metrics.take() == []


def test_the_server_is_told_once_what_a_metric_is() -> None:
    metrics = Metrics("m")
    metrics.counter("tokens", help="Tokens of both kinds")
    metrics.histogram("step", buckets=(1, 2.5, float("inf")))
    metrics.add_counter("TorchServes", 1)
    assert metrics.descriptors.take() == [
        MetricDescriptor("tokens", "counter", "Tokens of both kinds"),
        MetricDescriptor("step", "histogram", "", (1.0, 2.5)),
    ]
    metrics.counter("tokens", help="again")
    metrics.histogram("step")
    metrics.histogram("step", buckets=[1, 2.5])
    assert metrics.descriptors.take() == []


@pytest.mark.parametrize(
    ("buckets", "words"),
    [
        ([], "the histogram 'step' needs 1 to 100 buckets, got 0"),
        ([float("inf")], "needs 1 to 100 buckets, got 0"),
        (range(101), "needs 1 to 100 buckets, got 101"),
        ([2, 1], r"are upper bounds in ascending order: \[2.0, 1.0\]"),
        ([1, 1], "ascending"),
        ([1, float("inf"), 2], "ascending"),
        ([float("nan")], "ascending"),
        ([-float("inf"), 1], "ascending"),
    ],
)
def test_buckets_that_cannot_be_meant(buckets: Any, words: str) -> None:
    metrics = Metrics("m")
    with pytest.raises(ValueError, match=words):
        metrics.histogram("step", buckets=buckets)
    assert metrics.descriptors.take() == []


def test_a_histogram_has_one_set_of_buckets() -> None:
    metrics = Metrics("m")
    metrics.histogram("step", buckets=[1, 2])
    with pytest.raises(ValueError, match=r"the histogram 'step' has its buckets already \(\[1.0, 2.0\]\), not \[3.0\]"):
        metrics.histogram("step", buckets=[3])
    metrics.histogram("other")
    with pytest.raises(ValueError, match=r"already \(those of its unit\)"):
        metrics.histogram("other", buckets=[3])


def test_forms_are_bounded() -> None:
    metrics = Metrics("m")
    for number in range(MOST_FORMS + 5):
        metrics.gauge(f"made_up_{number}")
    assert len(metrics.descriptors.take()) == MOST_FORMS
    with pytest.raises(ValueError, match="'long' has 1001 characters; 1000 are the most"):
        metrics.gauge("long", help="x" * (LONGEST_HELP + 1))


def test_counts_of_a_histogram() -> None:
    metrics = Metrics("m")
    metrics.histogram("t", "s", ("kind",), buckets=(1, 2)).merge([1, 0, 2], 7.5, kind="a")
    assert only(metrics) == Sample("t", "histogram", "Seconds", 7.5, (("kind", "a"),), counts=(1, 0, 2))


@pytest.mark.parametrize("counts", [[], [1, 2], [1, 2, 3, 4], [1, -1, 0]])
def test_counts_that_do_not_fit_the_buckets(counts: list[int]) -> None:
    histogram = Metrics("m").histogram("t", buckets=(1, 2))
    with pytest.raises(ValueError, match=r"histogram t has 2 buckets of its own: .* got \["):
        histogram.merge(counts, 1)


@pytest.mark.parametrize("metric", [Metrics("m").histogram("t"), Metrics("m").gauge("t")])
def test_counts_need_buckets(metric: Metric) -> None:
    with pytest.raises(ValueError, match="t has 0 buckets of its own"):
        metric.merge([1], 1)
