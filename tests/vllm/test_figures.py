"""Figures of the engine as the server's metrics."""

from __future__ import annotations

import asyncio

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from msx_core.metrics.descriptors import MetricDescriptor
from msx_sdk.metrics import Metrics
from msx_vllm.figures import FiguresTeller, VllmFigures, VllmSeries

NOTHING = VllmFigures((), 0, 0, 0, 0, 0, 0, 0)


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
        found = EngineSeries(10).read()
    finally:
        for one in (running, usage, hits, ended, config, first, many):
            REGISTRY.unregister(one)
    assert found[1:] == (3, 0, 0, 5, 10, 7, 0)
    assert sorted(found.series) == [
        ("vllm:kv_cache_usage_perc", "gauge", {}, 0.5, "", (), ()),
        ("vllm:num_requests_running", "gauge", {}, 3, "", (), ()),
        ("vllm:prefix_cache_hits_total", "counter", {}, 7, "", (), ()),
        ("vllm:request_success_total", "counter", {"finished_reason": "stop"}, 2, "", (), ()),
        ("vllm:time_to_first_token_seconds", "histogram", {}, 6.75, "First", (0.5, 2), (1, 2, 1)),
    ]


def test_histograms_are_told_by_steps() -> None:
    metrics = Metrics("m")
    seen = VllmSeries("vllm:h", "histogram", {"kind": "a"}, 1.5, "Help", (1.0,), (1, 1))
    read = iter([seen, seen, seen._replace(value=4.5, counts=(2, 2))])

    async def tell() -> None:
        figures = FiguresTeller(metrics, lambda: NOTHING._replace(series=(next(read),)))
        figures._tell()
        figures._tell()
        figures.stop()

    asyncio.run(tell())
    assert [(one.value, one.counts) for one in metrics.take() if one.name == "vllm:h"] == [(1.5, (1, 1)), (3, (1, 1))]
    assert MetricDescriptor("vllm:h", "histogram", "Help", (1.0,)) in metrics.descriptors.take()


def test_counters_are_told_by_steps() -> None:
    read = iter([3.0, 3.0, 5.0])
    metrics = Metrics("m")

    async def tell() -> None:
        figures = FiguresTeller(
            metrics,
            lambda: NOTHING._replace(waiting=2, series=(VllmSeries("vllm:x_total", "counter", {}, next(read)),)),
        )
        figures._tell()
        figures._tell()
        figures.queued(0.5)
        figures.stop()

    asyncio.run(tell())
    samples = [(one.name, one.kind, one.value) for one in metrics.take()]
    assert [value for name, _, value in samples if name == "vllm:x_total"] == [3, 2]
    assert ("msx_llm_waiting", "gauge", 2) in samples
    assert ("msx_llm_queue_seconds", "histogram", 0.5) in samples
