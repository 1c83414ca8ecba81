"""TorchServe's log lines about the life of a worker, beside ours: alerts and scripts of its users match them."""

import logging
import time
from collections.abc import Mapping

from msx_frontend.workers.group_end import GroupEnd

log = logging.getLogger("org.pytorch.serve.wlm.WorkerThread")


class TorchServeLines:
    def __init__(self, number: int) -> None:
        self._number = number
        self._recovering = False
        self._labels: Mapping[str, object] = {}

    def started(self, labels: Mapping[str, object]) -> None:
        self._labels = {**labels, "worker": self._number}

    def loaded(self) -> None:
        if self._recovering:
            self._recovering = False
            log.info("Auto recovery succeeded, reset recoveryStartTS", extra=self._labels)

    def disconnected(self, end: GroupEnd, *, loaded: bool) -> None:
        state = "SCALED_DOWN" if end.expected else "MODEL_LOADED" if loaded else "STARTED"
        log.info("%d Worker disconnected. WORKER_%s", self._number, state, extra=self._labels)

    def failed(self, end: GroupEnd) -> None:
        log.error("Backend worker error: %s", end.reason, extra=self._labels)
        if self._recovering:
            log.warning("Auto recovery failed again", extra=self._labels)
        else:
            self._recovering = True
            log.info("Auto recovery start timestamp: %d", time.time() * 1000, extra=self._labels)

    def retries(self, delay: float) -> None:
        log.info("Retry worker: %d in %g seconds.", self._number, delay, extra=self._labels)


class UnansweredCalls:
    """Counts ends of a version's workers, in a row, because a call was not answered in time. An answer of any of its
    workers ends the row."""

    def __init__(self) -> None:
        self._row, self._answered = 0, 0.0

    def group_ended(self, end: GroupEnd, answered: float, labels: Mapping[str, object]) -> None:
        """`answered`: requests that the version has answered so far."""
        if end.unanswered:
            self._row = self._row + 1 if answered <= self._answered else 1
            self._answered = answered
            log.error("Number or consecutive unsuccessful inference %d", self._row, extra=labels)
