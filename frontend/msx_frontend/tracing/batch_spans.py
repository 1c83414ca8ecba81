"""The spans of batches: one call of a handler, in the trace of its first request, with links to all of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from msx_frontend.metrics.phases import Phases
from msx_sdk._internal.tracing.span import Span, Value
from msx_sdk._internal.tracing.trace_context import TraceContext

MOST_KNOWN = 1024
"""Batches whose last requests may still end: those of a stream end one by one."""


class TakesSpans(Protocol):
    def offer(self, span: Span) -> None: ...


class TracedBatch:
    def __init__(self, parent: TraceContext, size: int, labels: tuple[str, str]) -> None:
        self.context, self.parent, self.labels, self.size = parent.child(), parent, labels, size
        self.links: list[TraceContext] = []
        self.start = self.end = 0.0


class BatchSpans:
    """The requests of a batch that end in one turn of the loop have links from its span; later ones only to it."""

    def __init__(self, export: TakesSpans, soon: Callable[[Callable[[], object]], object] | None = None) -> None:
        """`soon` calls a function in the next turn of the loop."""
        self._export, self._soon = export, soon
        self._known: OrderedDict[tuple[int, float], TracedBatch] = OrderedDict()
        self._new: list[TracedBatch] = []

    def add(
        self, job: Any, context: TraceContext, phases: Phases, labels: tuple[str, str], epoch: float
    ) -> TraceContext:
        """The span of the job's batch. `epoch`: seconds to add to the instants of `phases`."""
        key = (id(getattr(job, "group", None)), phases.begun)
        batch = self._known.get(key)
        if batch is None:
            batch = self._known[key] = TracedBatch(context, phases.batch, labels)
            self._begin(batch)
        batch.links.append(context)
        batch.start, batch.end = phases.begun + epoch, max(batch.end, phases.answered + epoch)
        return batch.context

    def _begin(self, batch: TracedBatch) -> None:
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        if not self._new:
            (self._soon or asyncio.get_running_loop().call_soon)(self._tell)
        self._new.append(batch)

    def _tell(self) -> None:
        batches, self._new = self._new, []
        for one in batches:
            attributes = attributes_of(*one.labels) | {"msx.batch.size": max(one.size, len(one.links))}
            links = tuple(one.links)
            self._export.offer(Span("batch", one.context, one.parent, one.start, one.end, attributes, links=links))


def attributes_of(model: str, version: str) -> dict[str, Value]:
    return {"msx.model.name": model, "msx.model.version": version}
