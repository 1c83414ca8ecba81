"""Samples of metrics: the handler adds them, the worker takes them and sends them to the server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msx_core.batch import current_request_ids
from msx_core.metrics.kinds import COUNTER, GAUGE, UNITS, checked_kind

log = logging.getLogger("msx.metrics")


class Sample(NamedTuple):
    """One update: an amount to add (counter), a value to set (gauge) or to observe (histogram).

    `request_id` names the request, or the requests of the batch with commas between, for log lines. With `counts`, of a
    histogram, it is many observations: `value` is their sum, and the counts are those of the buckets.
    """

    name: str
    kind: str
    unit: str
    value: float
    labels: tuple[tuple[str, str], ...]
    request_id: str = ""
    counts: tuple[int, ...] = ()


class Samples:
    """The samples that the worker has not taken yet, at most 10,000. Thread-safe."""

    LIMIT = 10_000

    def __init__(self, model_name: str, lock: threading.Lock | None = None) -> None:
        self.model_name = model_name
        self.every_call = False
        """True: keep a sample of PredictionTime for each call, for logs. False: keep the last one only."""
        self.dropped = 0
        self._last_call: tuple[float, Sequence[str]] | None = None
        self._samples: list[Sample] = []
        self._lock = lock or threading.Lock()

    def add_sample(
        self, name: str, kind: str, unit: str, value: float, labels: Mapping[str, str], request_id: str = ""
    ) -> None:
        """As `record`; a negative step of a counter is logged and left out, as in TorchServe."""
        if kind == COUNTER and value < 0:
            log.error("counter %s cannot go down: %s is left out", name, value)
        else:
            self.record(name, kind, unit, value, labels, request_id)

    def record(
        self,
        name: str,
        kind: str,
        unit: str,
        value: float,
        labels: Mapping[str, str],
        request_id: str = "",
        counts: tuple[int, ...] = (),
    ) -> None:
        """`request_id` "" stands for all requests of the call."""
        kind = checked_kind(name, kind)
        pairs = tuple((str(key), str(text)) for key, text in labels.items())
        request_id = request_id or current_request_ids.get()
        sample = Sample(str(name), kind, UNITS.get(unit, str(unit or "unit")), float(value), pairs, request_id, counts)
        with self._lock:
            if len(self._samples) < self.LIMIT:
                self._samples.append(sample)
            else:
                self.dropped += 1

    def prediction_time(self, seconds: float, request_ids: Sequence[str]) -> None:
        """Sets TorchServe's gauge of the handler's last call. Many thousand calls may come between two `take()`."""
        self._last_call = (seconds, request_ids)
        if self.every_call:
            self._record_call()

    def take(self) -> list[Sample]:
        self._record_call()
        with self._lock:
            samples, self._samples = self._samples, []
        return samples

    def _record_call(self) -> None:
        last, self._last_call = self._last_call, None
        if last is not None:
            labels = {"ModelName": self.model_name, "Level": "Model"}
            self.record("PredictionTime", GAUGE, "ms", last[0] * 1000, labels, ",".join(last[1]))
