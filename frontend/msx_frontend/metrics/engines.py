"""What the engines of a version's workers told last, of what the whole version is measured by."""

from __future__ import annotations

from collections import defaultdict

from msx_protocol import MetricSample

WAITING, USED, TOTAL = "msx_llm_waiting", "msx_llm_blocks_used", "msx_llm_blocks_total"
NAMES = frozenset({WAITING, USED, TOTAL})


class EngineFigures:
    """By worker. An engine tells its figures once a second."""

    def __init__(self) -> None:
        self._of: defaultdict[int, dict[str, float]] = defaultdict(dict)

    def add(self, worker: int, samples: list[MetricSample]) -> None:
        for sample in samples:
            if sample.name in NAMES:
                self._of[worker][sample.name] = sample.value

    def forget(self, worker: int) -> None:
        self._of.pop(worker, None)

    def waiting(self, worker: int) -> int:
        """Texts that the worker was given and that wait for a place in its batch."""
        return int(self._of[worker].get(WAITING, 0)) if worker in self._of else 0

    @property
    def utilization(self) -> float:
        """From 0 to 1: used blocks of keys and values over all of them, of all workers; 0 without an engine."""
        total = sum(told.get(TOTAL, 0) for told in self._of.values())
        return sum(told.get(USED, 0) for told in self._of.values()) / total if total > 0 else 0.0
