"""Metrics that handlers report, as Prometheus metrics."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram

from msx_backend.protocol import MetricSample
from msx_frontend.verbatim_counter import VerbatimCounter

log = logging.getLogger("msx.metrics")

MOST_METRICS = 200
MOST_SERIES = 1000
"""Of one metric. A handler that makes up names or label values must not fill the memory."""

MODEL_LABEL = "ModelName"
"""TorchServe's. Its `add_*` methods set it; here every handler metric has it, so that models do not mix."""


@dataclass
class _Family:
    metric: VerbatimCounter | Gauge | Histogram
    kind: str
    labels: list[str]
    series: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def child(self, values: tuple[str, ...]) -> Any:
        if values not in self.series:
            if len(self.series) >= MOST_SERIES:
                raise ValueError(f"a metric may have at most {MOST_SERIES} combinations of label values")
            self.series[values] = self.metric.labels(*values)
        return self.series[values]


class HandlerMetrics:
    """The first sample of a name decides its kind and labels; one that differs is left out and logged once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._families: dict[str, _Family] = {}
        self._complained: set[str] = set()

    def add(self, samples: list[MetricSample], model: str) -> None:
        for sample in samples:
            try:
                self._add(sample, {MODEL_LABEL: model, **dict(sample.labels)})
            except ValueError as error:
                self._complain(sample.name, str(error))

    def _add(self, sample: MetricSample, labels: dict[str, str]) -> None:
        names = [_prometheus_name(name) for name in sorted(labels)]
        family = self._families.get(sample.name) or self._make(sample, names)
        if (sample.kind, names) != (family.kind, family.labels):
            raise ValueError(f"it is a {family.kind} with the labels {family.labels}")
        child = family.child(tuple(labels[name] for name in sorted(labels)))
        update = {"counter": "inc", "gauge": "set", "histogram": "observe"}[sample.kind]
        getattr(child, update)(sample.value)

    def _make(self, sample: MetricSample, labels: list[str]) -> _Family:
        if len(self._families) >= MOST_METRICS:
            raise ValueError(f"handlers may bring at most {MOST_METRICS} metrics")
        name, text = _prometheus_name(sample.name), f"A handler's metric with unit: {sample.unit}"
        made = _KINDS[sample.kind](name, text, labels, registry=self._registry)
        family = self._families[sample.name] = _Family(made, sample.kind, labels)
        return family

    def _complain(self, name: str, reason: str) -> None:
        if name not in self._complained and len(self._complained) < MOST_METRICS:
            self._complained.add(name)
            log.warning("a sample of the handler metric %r was left out: %s", name, reason)


_KINDS: dict[str, type[VerbatimCounter] | type[Gauge] | type[Histogram]] = {
    "counter": VerbatimCounter,
    "gauge": Gauge,
    "histogram": Histogram,
}


def _prometheus_name(name: str) -> str:
    clean = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return clean if clean[:1].isalpha() else f"_{clean}"
