"""Figures that the engines of a version's workers reported last, which make up those of the version."""

import time
from collections import defaultdict
from typing import NamedTuple

from msx_protocol import MetricSample

WAITING, USED, TOTAL = "msx_llm_waiting", "msx_llm_blocks_used", "msx_llm_blocks_total"
NAMES = frozenset({WAITING, USED, TOTAL})
ADAPTER_TEXTS, ADAPTER_PLACES = "msx_llm_adapter_texts", "msx_llm_adapter_places"


class AdapterInfo(NamedTuple):
    """Names of adapters with texts that run, of those with texts that wait alone, how many a step may have at once,
    and when an engine told that last, in seconds since the epoch."""

    running: tuple[str, ...]
    waiting: tuple[str, ...]
    places: int
    told: float


class EngineFigures:
    """Figures by worker. An engine tells its figures once a second."""

    def __init__(self) -> None:
        self._of: defaultdict[int, dict[str, float]] = defaultdict(dict)
        self._places: dict[int, int] = {}
        self._texts: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
        """Adapters and states of which there are texts."""
        self._told = 0.0

    def add(self, worker: int, samples: list[MetricSample]) -> None:
        for sample in samples:
            if sample.name in NAMES:
                self._of[worker][sample.name] = sample.value
            elif sample.name == ADAPTER_PLACES and sample.value:
                self._places[worker], self._told = int(sample.value), time.time()
            elif sample.name == ADAPTER_TEXTS:
                self._add_texts(worker, dict(sample.labels), some=sample.value > 0)

    def forget(self, worker: int) -> None:
        self._of.pop(worker, None)
        self._places.pop(worker, None)
        self._texts.pop(worker, None)

    @property
    def adapters(self) -> AdapterInfo | None:
        """Adapters of all workers; None where no engine has room for adapters."""
        if not self._places:
            return None
        texts = {one for worker in self._texts.values() for one in worker}
        running = {adapter for adapter, state in texts if state == "running"}
        waiting = {adapter for adapter, state in texts} - running
        return AdapterInfo(tuple(sorted(running)), tuple(sorted(waiting)), max(self._places.values()), self._told)

    def _add_texts(self, worker: int, labels: dict[str, str], *, some: bool) -> None:
        state = labels.get("adapter", ""), labels.get("state", "")
        (self._texts[worker].add if some else self._texts[worker].discard)(state)

    def waiting(self, worker: int) -> int:
        """Texts that the worker was given and that wait for a place in its batch."""
        return int(self._of[worker].get(WAITING, 0)) if worker in self._of else 0

    @property
    def utilization(self) -> float:
        """Share, from 0 to 1: used blocks of keys and values over all of them, of all workers; 0 without an engine."""
        total = sum(told.get(TOTAL, 0) for told in self._of.values())
        return sum(told.get(USED, 0) for told in self._of.values()) / total if total > 0 else 0.0
