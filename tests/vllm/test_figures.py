"""Figures of the engine as the server's metrics."""

from __future__ import annotations

import asyncio

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from msx_core.metrics.descriptors import MetricDescriptor
from msx_sdk.metrics import Metrics
from msx_vllm.figures import THEIRS, FiguresTeller, VllmFigures, VllmSeries

NOTHING = VllmFigures(0, 0, 0, 0, 0, 0, 0)


def test_vllms_registry_is_read(stub: None) -> None:
    from msx_vllm.engine.series import EngineSeries

    labels = ("model_name", "engine")
    running = Gauge("vllm:num_requests_running", "", labels)
    usage = Gauge("vllm:kv_cache_usage_perc", "", labels)
    hits = Counter("vllm:prefix_cache_hits", "", labels)
    ended = Counter("vllm:request_success", "", (*labels, "finished_reason"))
    config = Gauge("vllm:cache_config_info", "", labels)
    first = Histogram("vllm:time_to_first_token_seconds", "First", labels, buckets=(0.5, 2))
    many = Histogram("vllm:many", "", labels, buckets=range(101))
    try:
        running.labels("m", "0").set(3)
        usage.labels("m", "0").set(0.5)
        hits.labels("m", "0").inc(7)
        ended.labels("m", "0", "stop").inc(2)
        for seconds in (0.25, 1, 1.5, 4):
            first.labels("m", "0").observe(seconds)
        many.labels("m", "0").observe(1)
        reader = EngineSeries(10)
        figures, series = reader.figures(), sorted(reader.series())
    finally:
        for one in (running, usage, hits, ended, config, first, many):
            REGISTRY.unregister(one)
    assert figures == (3, 0, 0, 5, 10, 7, 0)
    assert series == [
        ("vllm:kv_cache_usage_perc", "gauge", {}, 0.5, "", (), ()),
        ("vllm:num_requests_running", "gauge", {}, 3, "", (), ()),
        ("vllm:prefix_cache_hits_total", "counter", {}, 7, "", (), ()),
        ("vllm:request_success_total", "counter", {"finished_reason": "stop"}, 2, "", (), ()),
        ("vllm:time_to_first_token_seconds", "histogram", {}, 6.75, "First", (0.5, 2), (1, 2, 1)),
    ]


class Read:
    """Figures of which the series change each time."""

    def __init__(self, *series: VllmSeries) -> None:
        self._series = iter(series)

    def figures(self) -> VllmFigures:
        return NOTHING._replace(waiting=2)

    def series(self) -> list[VllmSeries]:
        return [next(self._series)]


def told(*series: VllmSeries) -> Metrics:
    """Metrics after as many seconds as it takes to tell them all."""
    metrics = Metrics("m")

    async def tell() -> None:
        figures = FiguresTeller(metrics, Read(*series))
        for _ in range(THEIRS * (len(series) - 1)):
            figures._tell()
        figures.queued(0.5)
        figures.stop()

    asyncio.run(tell())
    return metrics


def test_histograms_are_told_by_steps() -> None:
    seen = VllmSeries("vllm:h", "histogram", {"kind": "a"}, 1.5, "Help", (1.0,), (1, 1))
    metrics = told(seen, seen, seen._replace(value=4.5, counts=(2, 2)))
    assert [(one.value, one.counts) for one in metrics.take() if one.name == "vllm:h"] == [(1.5, (1, 1)), (3, (1, 1))]
    assert MetricDescriptor("vllm:h", "histogram", "Help", (1.0,)) in metrics.descriptors.take()


def test_counters_are_told_by_steps() -> None:
    metrics = told(*(VllmSeries("vllm:x_total", "counter", {}, value) for value in (3, 3, 5)))
    samples = [(one.name, one.kind, one.value) for one in metrics.take()]
    assert [value for name, _, value in samples if name == "vllm:x_total"] == [3, 2]
    assert ("msx_llm_queue_seconds", "histogram", 0.5) in samples


def test_ours_are_told_each_second() -> None:
    gauge = VllmSeries("vllm:g", "gauge", {}, 1)
    samples = [(one.name, one.value) for one in told(gauge, gauge).take()]
    assert samples.count(("msx_llm_waiting", 2)) == THEIRS + 1
    assert samples.count(("vllm:g", 1)) == 2
