"""A context that describes, on each thread, the batch of the step which runs there."""

from __future__ import annotations

from concurrent.futures import Executor
from contextvars import ContextVar

from msx_core.batch import Batch
from msx_core.context import Context
from msx_core.handler_metrics import Metrics
from msx_core.model_info import ModelInfo

_step_batch: ContextVar[Batch | None] = ContextVar("step_batch", default=None)


class StepContext(Context):
    """The context of a handler whose steps run on several threads at once. That of one whole call (`for_batch`) also
    describes its batch on threads that the handler has started."""

    __slots__ = ("_own",)

    def __init__(self, info: ModelInfo, metrics: Metrics | None = None, model_thread: Executor | None = None) -> None:
        self._own: Batch | None = None
        super().__init__(info, metrics, model_thread)

    def for_batch(self, batch: Batch) -> Context:
        self.bind(batch)
        context = object.__new__(StepContext)
        context.__dict__ = self.__dict__
        context._own = batch
        return context

    @property
    def _batch(self) -> Batch | None:
        return _step_batch.get() or self._own

    @_batch.setter
    def _batch(self, batch: Batch | None) -> None:
        _step_batch.set(batch)
