"""Runs the three steps of a handler one at a time, so that those of different batches can run at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from msx_core.batch import Batch, BatchSink
from msx_core.request import InferenceRequest
from msx_core.runner import RAISED, Runner
from msx_core.steps import ThreeSteps

__all__ = ["OverlapRunner", "StepBatch"]


class StepBatch:
    """A batch between two steps. `value` is what the last step returned, `error` what ended one.

    `whole`: it has no steps, but is answered by one call of `handle`. `seconds`: time of its steps so far.
    """

    __slots__ = ("batch", "error", "requests", "seconds", "value", "whole")

    def __init__(self, requests: list[InferenceRequest], batch: Batch | None, *, whole: bool = False) -> None:
        self.requests, self.batch, self.whole = requests, batch, whole
        self.value: Any = None
        self.error: BaseException | None = None
        self.seconds = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether its next step is of use to anybody."""
        return self.batch is not None and not self.whole and self.error is None and not self.batch.deserted


class OverlapRunner:
    """Each step of a batch may run on another thread. `infer` and `recover` belong to the main one. No step runs on two
    threads at once: a call of the whole `handle` waits for those of other batches, and they for it.

    The runner's context is a `StepContext`.
    """

    def __init__(self, runner: Runner, steps: ThreeSteps, sink: BatchSink) -> None:
        self.context = runner.context
        self._runner, self._steps, self._sink = runner, steps, sink
        self._owner = runner.handler.owner
        self._owner.context = runner.context  # `handle`, which is not called, would set it
        self._decode = runner.context.info.decode_input
        self._preprocessing, self._postprocessing = Lock(), Lock()

    def prepare(self, requests: list[InferenceRequest]) -> StepBatch:
        """Read the requests and preprocess them."""
        readable = self._runner.readable([one for one in requests if not one.cancelled], self._sink)
        if not readable:
            return StepBatch(requests, None)
        step = StepBatch(requests, Batch(readable, self._sink, blocks=True), whole=self._is_whole(readable[0]))
        if not step.whole:
            self._call(step, self._preprocess)
        return step

    def infer(self, step: StepBatch) -> None:
        """Run `inference`, or the whole call of `handle` where it has no steps."""
        if step.goes_on:
            self._call(step, self._inference)
        elif step.whole and step.batch is not None:
            with self._alone(step):
                self._runner.run_read(step.batch.requests, self._sink)

    def answer(self, step: StepBatch) -> None:
        """Postprocess, and give the replies to the sink."""
        if step.goes_on:
            self._call(step, self._postprocess)

    def recover(self, step: StepBatch) -> None:
        """Answer what a failed step left."""
        if step.error is not None and step.batch is not None:
            with self._alone(step):
                self._runner.recover(step.batch, step.error, self._sink)
            step.error = None  # its traceback refers to what the step worked on, and to the batch itself

    @contextmanager
    def _alone(self, step: StepBatch) -> Iterator[None]:
        """Enclose calls of the whole `handle`."""
        with self._preprocessing, self._postprocessing:
            started = time.monotonic()
            try:
                yield
            finally:
                step.seconds += time.monotonic() - started
                self.context.bind(None)
                self._owner.context = self.context  # `handle` has set its own, which describes its batch for ever

    def _is_whole(self, request: InferenceRequest) -> bool:
        if request.operation and self._runner.handler.function_for(request.operation) != self._runner.handler.handle:
            return True
        return "True" in (request.headers.get("describe"), request.headers.get("explain"))

    def _preprocess(self, step: StepBatch, batch: Batch) -> Any:
        with self._preprocessing:
            return self._timed(step, 0, [request.data(self._decode) for request in batch.requests])

    def _inference(self, step: StepBatch, batch: Batch) -> Any:
        return self._timed(step, 1, step.value)

    def _postprocess(self, step: StepBatch, batch: Batch) -> None:
        with self._postprocessing:
            result = self._timed(step, 2, step.value)
            if self._steps.metric:
                self.context.metrics.add_time(self._steps.metric, step.seconds * 1000)
            self._runner.answer(batch, result, self.context)

    def _timed(self, step: StepBatch, place: int, value: Any) -> Any:
        """Call the step at this place."""
        call, started = getattr(self._owner, self._steps.names[place]), time.monotonic()
        try:
            return call(value)
        finally:
            step.seconds += time.monotonic() - started

    def _call(self, step: StepBatch, call: Callable[[StepBatch, Batch], Any]) -> None:
        """Keep what the call returns, or raises: nothing leaves here."""
        batch = step.batch
        assert batch is not None
        self.context.bind(batch)
        try:
            step.value = call(step, batch)
        except RAISED as error:
            step.value, step.error = None, error
            self._runner.failed(self.context, error)
        finally:
            self.context.bind(None)
