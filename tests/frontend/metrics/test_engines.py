"""Figures of a version's engines together."""

from __future__ import annotations

import time

from msx_frontend.metrics.engines import ADAPTER_PLACES, ADAPTER_TEXTS, EngineFigures
from msx_protocol import MetricSample


def places(count: int) -> MetricSample:
    return MetricSample(ADAPTER_PLACES, "GAUGE", "", count, [])


def texts(adapter: str, state: str, count: int) -> MetricSample:
    return MetricSample(ADAPTER_TEXTS, "GAUGE", "", count, [("adapter", adapter), ("state", state)])


def test_adapters_of_all_workers() -> None:
    began, figures = time.time(), EngineFigures()
    figures.add(1, [places(0)])
    assert figures.adapters is None
    figures.add(1, [places(4), texts("b", "running", 2), texts("b", "waiting", 1), texts("c", "waiting", 1)])
    figures.add(2, [places(4), texts("a", "running", 1), texts("c", "waiting", 0)])
    told = figures.adapters
    assert told is not None
    assert (told.running, told.waiting, told.places) == (("a", "b"), ("c",), 4)
    assert began <= told.told <= time.time()
    figures.add(1, [places(4), texts("b", "running", 0)])
    assert figures.adapters is not None
    assert (figures.adapters.running, figures.adapters.waiting) == (("a",), ("b", "c"))
    for worker in (1, 2):
        figures.forget(worker)
    assert figures.adapters is None
