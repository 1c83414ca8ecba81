"""The spans of requests: which are sampled, and when they are written.

That is done for many at once, some milliseconds after their ends. Written between two requests, a span took about twice
as long when that was measured; why is not known, the processor's caches are a guess.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from random import random
from typing import Any, Protocol

from msx_core.tracing.trace_context import STATE, TraceContext, new_trace, parsed
from msx_frontend.job_headers import KeptHeaders, trace_headers
from msx_frontend.metrics.phases import phases_of
from msx_frontend.metrics.traces import LONGEST, reason_of
from msx_frontend.tracing.request_tree import spans_of
from msx_frontend.tracing.sampled_request import SampledRequest, Traced, operation_of
from msx_frontend.tracing.traced_batches import TracedBatches

SAMPLED_KEPT = 4096
"""Requests whose lines in the access log may still come."""
TOGETHER = 0.001
"""Seconds in which requests are sampled all or none: a batch is then whole in its trace, and one sampled request after
the other takes half as long as one among many that are not."""
FAILED = 500
"""Status from which on the server has failed, not the client (the semantic conventions of HTTP servers)."""
WRITTEN_AFTER = 0.05
"""Seconds after the first of them has ended that spans are written."""
WRITTEN_AT = 64
"""Requests whose spans are written earlier, in the next turn of the loop."""


class TakesSpans(Protocol):
    def offer_all(self, spans: list[bytes]) -> None: ...


class TracedModel(Protocol):
    """The metrics of a model version."""

    @property
    def labels(self) -> tuple[str, str]: ...

    def exemplify(self, seconds: float, trace: str) -> None: ...


class RequestSpans:
    """`ratio` of the requests whose clients say nothing are sampled, with those that come together; else the client has
    decided (a parent-based sampler)."""

    def __init__(self, export: TakesSpans, ratio: float, chance: Callable[[], float] = random) -> None:
        self._export, self._ratio, self._chance = export, ratio, chance
        self._chosen, self._until = False, 0.0
        self._batches = TracedBatches()
        self._sampled: OrderedDict[str, str] = OrderedDict()
        self._ended: list[SampledRequest] = []
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None

    def begin(self, job: Any) -> None:
        """Begin the spans of a job, or a request of several. Its headers tell its worker whose child the handler's
        spans are. Where a request is jobs of their own, the others go with the first."""
        job.traced = None  # at the end, to look for what was never set costs three times as much
        parent = _parent(job)
        if (first := getattr(job, "first", None)) is not None:
            parent = _parent(first)  # also where the client has decided, whose headers are those of each
            if parent is None:
                return  # it was not sampled
        if parent is None:
            if not self._chooses(job.enqueued):
                return
            context = new_trace()
        elif not parent.sampled:
            return
        else:
            context = parent.child()
        traced: Traced = context, parent
        job.traced, job.headers = traced, _headers(job, context).with_parent(context.header)
        self._remember(job.id, context.trace)

    def _chooses(self, now: float) -> bool:
        if now >= self._until:
            self._chosen, self._until = self._chance() < self._ratio, now + TOGETHER
        return self._chosen

    def ended(self, jobs: list[Any], now: float, of: TracedModel) -> None:
        """Jobs that ended together."""
        for job in [job for job in jobs if getattr(job, "traced", None) is not None]:
            (context, parent), job.traced = job.traced, None  # it is told once
            of.exemplify(now - job.enqueued, context.trace)
            error = reason_of(job)[:LONGEST] if job.status >= FAILED else None
            phases, operation = phases_of(job, now), operation_of(job.kind)
            group = None if getattr(job, "of_nodes", False) else id(getattr(job, "group", None))
            self._ended.append(
                SampledRequest(context, parent, job.id, operation, job.status, error, phases, group, *of.labels)
            )
        if self._ended:
            self._flush_soon()

    def flush(self) -> None:
        """Writes the spans of what has ended."""
        for handle in (self._timer, self._soon):
            if handle is not None:
                handle.cancel()
        self._timer = self._soon = None
        ended, self._ended = self._ended, []
        batches = [self._batches.add(one) if one.phases.sent and one.group is not None else None for one in ended]
        epoch, spans = time.time() - time.monotonic(), list[bytes]()
        for one, batch in zip(ended, batches, strict=True):
            spans += spans_of(one, epoch, batch)
        self._export.offer_all(spans)

    def traces_of(self, ids: list[str]) -> dict[str, str]:
        """The traces of those that are sampled, in hexadecimal."""
        sampled = self._sampled
        return {id: sampled[id] for id in sampled.keys() & ids}

    def _flush_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITTEN_AFTER, self.flush)
        if self._soon is None and len(self._ended) >= WRITTEN_AT:
            # Not here: the others of a batch end in this turn, too.
            self._soon = asyncio.get_running_loop().call_soon(self.flush)

    def _remember(self, id: str, trace: str) -> None:
        self._sampled[id] = trace
        if len(self._sampled) > SAMPLED_KEPT:
            self._sampled.popitem(last=False)


def _headers(job: Any, context: TraceContext) -> KeptHeaders:
    """Its own, with the state of the trace, which those of a gRPC call do not have."""
    headers = job.headers if isinstance(job.headers, KeptHeaders) else KeptHeaders(job.headers)
    return KeptHeaders([*headers, (STATE, context.state)]) if context.state and not headers.trace[1] else headers


def _parent(job: Any) -> TraceContext | None:
    """Find the parent in the headers; that of a gRPC call is known to the job's sink. In a head that many requests
    share, it is looked for once."""
    headers = job.headers
    parent, state = headers.trace if isinstance(headers, KeptHeaders) else trace_headers(headers)
    if not parent:
        if (trace := getattr(job.sink, "trace", None)) is None:
            return None
        parent, state = trace
    return parsed(parent, state)
