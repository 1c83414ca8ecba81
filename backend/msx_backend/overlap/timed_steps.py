"""The steps of a batch one after the other, and how long each takes."""

import time
from collections.abc import Callable
from typing import NamedTuple

from msx_backend.overlap.pace import Pace
from msx_core.batch import BatchSink
from msx_core.overlap_runner import OverlapRunner, StepBatch
from msx_sdk.request import InferenceRequest


class EndedBatch(NamedTuple):
    """A batch that is over: its size, and a `time.monotonic()` instant. `more_wait`: requests waited before the answer,
    after which a lone client sends its next one."""

    requests: int
    at: float
    more_wait: bool


class TimedSteps:
    """Runs steps, and tells the pace how long they took. Calls of the whole `handle` tell it nothing."""

    def __init__(self, steps: OverlapRunner, pace: Pace, more_wait: Callable[[], bool]) -> None:
        """`more_wait` says whether requests wait in the socket."""
        self.context = steps.context
        self._steps, self._pace, self._more_wait = steps, pace, more_wait
        self.ended: list[EndedBatch] = []
        """Batches that `run` has answered."""

    def run(self, requests: list[InferenceRequest], sink: BatchSink) -> None:
        """Answer a batch on the main thread."""
        step = self.prepare(requests)
        self.infer(step)
        more_wait = self._more_wait()
        self.answer(step)
        self._steps.recover(step)
        self.ended.append(EndedBatch(len(requests), time.monotonic(), more_wait))

    def prepare(self, requests: list[InferenceRequest]) -> StepBatch:
        started = time.monotonic()
        step = self._steps.prepare(requests)
        if step.goes_on:
            self._pace.prepared(time.monotonic() - started)
        return step

    def infer(self, step: StepBatch) -> None:
        started = time.monotonic()
        self._steps.infer(step)
        if step.goes_on:
            self._pace.inferred(time.monotonic() - started)

    def answer(self, step: StepBatch) -> None:
        if step.goes_on:
            started = time.monotonic()
            self._steps.answer(step)
            self._pace.answered(time.monotonic() - started)

    def recover(self, step: StepBatch) -> None:
        self._steps.recover(step)
