from pathlib import Path

import pytest

from msx_frontend.metrics.declared import MetricsConfigError, load_spec


def test_the_file_that_is_shipped_has_torchserves_names() -> None:
    spec = load_spec()
    kinds = {one.name: (kind, one.unit, one.dimensions) for kind, one in (*spec.ts, *spec.model)}
    assert kinds["Requests2XX"] == ("counter", "Count", ("Level", "Hostname"))
    assert kinds["WorkerLoadTime"] == ("gauge", "Milliseconds", ("WorkerName", "Level", "Hostname"))
    assert kinds["GPUUtilization"] == ("gauge", "Percent", ("Level", "DeviceId", "Hostname"))
    labels = ("model_name", "model_version", "hostname")
    assert kinds["ts_queue_latency_microseconds"] == ("counter", "Microseconds", labels)
    assert kinds["PredictionTime"] == ("gauge", "ms", ("ModelName", "Level"))
    assert (len(spec.ts), len(spec.model)) == (19, 2)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "dimensions: [&m ModelName]\nts_metrics: {counter: [{name: A, unit: Count}], gauge: null}\n"
        "model_metrics: {histogram: [{name: B, unit: ms, dimensions: [*m]}]}\nother: ignored\n"
    )
    spec = load_spec(path)
    assert [(kind, one.name, one.dimensions) for kind, one in (*spec.ts, *spec.model)] == [
        ("counter", "A", ()),
        ("histogram", "B", ("ModelName",)),
    ]
    path.write_text("")
    assert load_spec(path).ts == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ts_metrics: {counter: [{name: A}]}", "unit"),
        ("ts_metrics: {summary: [{name: A, unit: Count}]}", "summary"),
        ("just words", "object"),
        ("{", "line 2, column 1"),
        ("ts_metrics: {counter: [{name: a b, unit: Count}]}", "'a b' is not a valid name of a metric"),
        ("model_metrics: {gauge: [{name: A, unit: ms, dimensions: [x-y]}]}", "'x-y' is not a valid dimension"),
        ("model_metrics: {gauge: [{name: A, unit: ms, dimensions: [x, x]}]}", "twice"),
        ("ts_metrics: {counter: [{name: A, unit: x}], gauge: [{name: A, unit: x}]}", "A is declared twice"),
        (
            "model_metrics: {gauge: [{name: A, unit: ms, buckets: [1]}]}",
            "the gauge A has buckets, which are for histograms only",
        ),
        ("model_metrics: {histogram: [{name: A, unit: ms, buckets: [2, 1]}]}", "ascending order: [2.0, 1.0]"),
        ("model_metrics: {histogram: [{name: A, unit: ms, buckets: []}]}", "'A' needs 1 to 100 buckets, got 0"),
    ],
)
def test_a_file_that_cannot_be_meant(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    with pytest.raises(MetricsConfigError) as info:
        load_spec(path)
    assert str(path) in str(info.value)
    assert words in str(info.value)
    assert "\n" not in str(info.value)
