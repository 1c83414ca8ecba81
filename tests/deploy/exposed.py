"""Every metric that a server exposes, with its labels: a page of the metrics listener with a sample of each."""

from __future__ import annotations

import asyncio
import re
from functools import cache

from msx_frontend.batches.figures import BatchFigures
from msx_frontend.deferred.figures import JobFigures
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.metrics.declared import load_spec
from msx_frontend.metrics.numbers import CounterFamily, HistogramFamily
from msx_frontend.metrics.observer import CLUSTER, ModelGauges, ObservedDevice, ServerFigures
from msx_llm.gauges import EngineGauges
from msx_llm.stats import RequestTimes
from msx_protocol import MetricInfo, MetricSample
from msx_sdk.metrics import Metrics
from tests.frontend.metrics.test_server import Version
from tests.llm.test_gauges import STATS
from tests.prometheus import samples
from tests.vllm.shown_metrics import HISTOGRAMS

OF_SCRAPES = frozenset({"job", "instance"})
"""Labels that Prometheus gives each sample."""


class WholeVersion(Version):
    def gauges(self) -> dict[str, float]:
        return dict.fromkeys(ModelGauges.HELP, 1.0)


@cache
def exposed() -> dict[str, frozenset[str]]:
    """Names of samples, as `msx_request_seconds_bucket`, to their labels without those of scrapes."""
    found = {"up": frozenset[str]()}  # Prometheus' own
    for name, labels, _ in samples(page()):
        found[name] = found.get(name, frozenset()) | labels.keys()
    return found


@cache
def page() -> str:
    return asyncio.run(_page()).decode()


def without_samples() -> set[str]:
    """Metrics to which this module should have given a sample."""
    names = set(re.findall(r"^# TYPE (\S+) \w+$", page(), re.MULTILINE))
    ends = ("", "_bucket", "_total")
    return {name for name in names if not any(name + end in exposed() for end in ends)}


async def _page() -> bytes:
    figures = ServerFigures(
        devices=lambda: [ObservedDevice(0, True, 41, {"corrected": 0})],
        cluster=lambda: [(name, labels, 1.0) for name, (_, labels) in CLUSTER.items()],
        connections=lambda: [("inference", 1)],
        certificate_end=lambda: 1.0,
        spans=lambda: {"exported": 1, "failed": 0, "dropped": 0},
    )
    metrics = ServerMetrics()
    metrics.show(figures)
    metrics.jobs.show(lambda: JobFigures(1, 1, {"done": 1}, 1.0, 1, 1, {"delivered": 1}))
    metrics.batches.show(lambda: BatchFigures({"completed": 1}, 1, 1, {"done": 1}, 1, 1))
    metrics.versions.append(WholeVersion())
    for family in [*vars(metrics).values(), *vars(metrics.text).values()]:
        if isinstance(family, CounterFamily | HistogramFamily):
            family.labels(*family._labels)
    version = ModelMetrics(metrics, "m", "1.0")
    for _, declared in load_spec().ts:
        metrics.ts_series(declared.name).add(1.0)
    for _, declared in load_spec().model:
        version.handler_samples([MetricSample(declared.name, "gauge", "ms", 1.0, [("Level", "Model")])], 9000)
    _engine(version)
    return await metrics.expose()


def _engine(version: ModelMetrics) -> None:
    """Record metrics as the engine of a language model does in its worker."""
    engine = Metrics()
    gauges = EngineGauges(engine, lambda: STATS)
    gauges.stop()
    gauges.tell(RequestTimes(arrived=1.0, started=2.0))
    for name in HISTOGRAMS:
        engine.histogram(name, "", buckets=(1,)).merge((1, 0), 1)
    version.handler_forms([MetricInfo(*form) for form in engine.descriptors.take()])
    version.handler_samples(
        [MetricSample(s.name, s.kind, s.unit, s.value, list(s.labels), counts=s.counts) for s in engine.take()], 9000
    )
