"""A context that describes, on each thread, the batch of the step which runs there."""

from __future__ import annotations

from contextvars import ContextVar

from msx_core.batch import Batch
from msx_core.context import Context

_step_batch: ContextVar[Batch | None] = ContextVar("step_batch", default=None)


class StepContext(Context):
    """The context of a handler whose steps run on several threads at once."""

    __slots__ = ()

    @property
    def _batch(self) -> Batch | None:
        return _step_batch.get()

    @_batch.setter
    def _batch(self, batch: Batch | None) -> None:
        _step_batch.set(batch)
