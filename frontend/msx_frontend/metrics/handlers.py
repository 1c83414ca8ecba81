"""Metrics that handlers report: those that are declared, and those that are new."""

from __future__ import annotations

import logging
import re

from prometheus_client import CollectorRegistry

from msx_backend.protocol import MetricSample
from msx_frontend.metrics.declared import HOSTNAME, Declared, Kind
from msx_frontend.metrics.family import Family, LogsMetrics

log = logging.getLogger("msx.metrics")

MOST_METRICS = 200
"""A handler that makes up names must not fill the memory."""

MODEL_LABEL = "ModelName"
"""TorchServe's. Its `add_*` methods set it; here every new metric has it, so that models do not mix."""

OWN = "msx_"
"""The engine's own metrics need no declaration."""


class HandlerMetrics:
    """A declared metric has its kind and its dimensions, and its host. Of a new one the first sample decides, if
    `auto_detect`. A sample that differs is left out and logged once."""

    def __init__(
        self,
        declared: tuple[tuple[Kind, Declared], ...],
        hostname: str,
        registry: CollectorRegistry | None,
        log: LogsMetrics | None = None,
        *,
        auto_detect: bool = True,
    ) -> None:
        self._hostname, self._registry, self._log, self._auto_detect = hostname, registry, log, auto_detect
        self._declared = {one.name: self._make(one.name, kind, one.unit, one.dimensions) for kind, one in declared}
        self._new: dict[str, Family] = {}
        self._complained: set[str] = set()

    def add(self, samples: list[MetricSample], model: str) -> None:
        for sample in samples:
            try:
                self._add(sample, model)
            except ValueError as error:
                self._complain(sample.name, str(error))

    def _add(self, sample: MetricSample, model: str) -> None:
        given = {_prometheus_name(label): text for label, text in sample.labels}
        known = {MODEL_LABEL: model, HOSTNAME: self._hostname, **given}
        family = self._declared.get(sample.name) or self._new_family(sample, tuple(given))
        if given.keys() - family.labels - {MODEL_LABEL, HOSTNAME} or family.labels_not_in(known):
            raise ValueError(f"it has the labels {list(family.labels)}, not {list(given)}")
        family.series(tuple(known[label] for label in family.labels)).add(sample.value, sample.request_id)

    def _new_family(self, sample: MetricSample, dimensions: tuple[str, ...]) -> Family:
        family = self._new.get(sample.name)
        if family is None:
            if not (self._auto_detect or sample.name.startswith(OWN)):
                raise ValueError("metrics_config does not declare it, and model_metrics_auto_detect is not true")
            if len(self._new) >= MOST_METRICS:
                raise ValueError(f"handlers may bring at most {MOST_METRICS} metrics")
            if MODEL_LABEL not in dimensions:
                dimensions = (MODEL_LABEL, *dimensions)
            family = self._new[sample.name] = self._make(sample.name, sample.kind, sample.unit, dimensions)
        if family.kind != sample.kind:
            raise ValueError(f"it is a {family.kind}, not a {sample.kind}")
        return family

    def _make(self, name: str, kind: str, unit: str, dimensions: tuple[str, ...]) -> Family:
        labels = (*(label for label in dimensions if label != HOSTNAME), HOSTNAME)
        return Family(_prometheus_name(name), kind, unit, labels, self._registry, self._log)

    def _complain(self, name: str, reason: str) -> None:
        if name not in self._complained and len(self._complained) < MOST_METRICS:
            self._complained.add(name)
            log.warning("a sample of the handler metric %r was left out: %s", name, reason)


def _prometheus_name(name: str) -> str:
    clean = re.sub(r"[^a-zA-Z0-9_:]", "_", name)
    return clean if clean[:1].isalpha() or clean[:1] == "_" else f"_{clean}"
