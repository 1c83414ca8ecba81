"""The spans of requests: which are sampled, and where each millisecond of them went.

Attributes follow OpenTelemetry's semantic conventions where they have a name for it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from random import random
from typing import Any, NamedTuple, Protocol

from msx_frontend.job import KeptHeaders, trace_headers
from msx_frontend.metrics.phases import Phases, phases_of
from msx_frontend.metrics.traces import LONGEST, reason_of
from msx_frontend.tracing.batch_spans import BatchSpans, TakesSpans, attributes_of
from msx_sdk._internal.tracing.span import Span
from msx_sdk._internal.tracing.trace_context import PARENT, TraceContext, new_trace, parsed
from msx_sdk.generation import GENERATE

SAMPLED_KEPT = 4096
"""Requests whose lines in the access log may still come."""
FAILED = 500
"""From this status on the server has failed, not the client (the semantic conventions of HTTP servers)."""
WORKED = ("worker", "prefill")
SHORTEST = 0.0001
"""Seconds: a part that took less is left out, but for the worker's."""


class TracedModel(Protocol):
    """The metrics of a model version."""

    @property
    def labels(self) -> tuple[str, str]: ...

    def exemplify(self, seconds: float, trace: str) -> None: ...


class Traced(NamedTuple):
    """What a sampled job keeps until its end. `parent` is the client's span."""

    context: TraceContext
    parent: TraceContext | None


class RequestSpans:
    """`ratio` of the requests whose clients say nothing are sampled; else the client has decided (a parent-based
    sampler)."""

    def __init__(self, export: TakesSpans, ratio: float, chance: Callable[[], float] = random) -> None:
        self._export, self._ratio, self._chance = export, ratio, chance
        self._batches = BatchSpans(export)
        self._sampled: OrderedDict[str, str] = OrderedDict()

    def begin(self, job: Any) -> None:
        """Of a job, or a request of several. Its headers tell its worker whose child the handler's spans are."""
        parent = _parent(job)
        if parent is None:
            if self._chance() >= self._ratio:
                return
            context = new_trace()
        elif not parent.sampled:
            return
        else:
            context = parent.child()
        job.traced = Traced(context, parent)
        job.headers = KeptHeaders(_with_parent(job.headers, context))
        self._remember(job.id, context)

    def ended(self, jobs: list[Any], now: float, of: TracedModel) -> None:
        """Jobs that ended together."""
        traced = [job for job in jobs if getattr(job, "traced", None) is not None]
        if not traced:
            return
        epoch = time.time() - time.monotonic()
        for job in traced:
            of.exemplify(now - job.enqueued, job.traced.context.trace)
            phases = phases_of(job, now)
            batch = self._batches.add(job, job.traced.context, phases, of.labels, epoch) if phases.sent else None
            self._spans_of(job, phases, epoch, *of.labels, batch)

    def trace_of(self, id: str) -> str:
        """The trace of a sampled request, in hexadecimal; "" for others."""
        return self._sampled.get(id, "")

    def _remember(self, id: str, context: TraceContext) -> None:
        self._sampled[id] = context.trace
        if len(self._sampled) > SAMPLED_KEPT:
            self._sampled.popitem(last=False)

    def _spans_of(
        self, job: Any, phases: Phases, epoch: float, model: str, version: str, batch: TraceContext | None
    ) -> None:
        traced: Traced = job.traced
        del job.traced  # it is told once
        attributes = attributes_of(model, version) | {
            "msx.request.id": job.id,
            "msx.operation": job.kind,
            "http.response.status_code": job.status,
        }
        error = reason_of(job)[:LONGEST] if job.status >= FAILED else None
        events = (("first token", phases.answered + epoch),) if job.kind == GENERATE and phases.answered else ()
        start, end = phases.came + epoch, phases.ended + epoch
        name = f"{job.kind or 'predict'} {model}"
        whole = Span(name, traced.context, traced.parent, start, end, attributes, "server", (), error, events)
        self._export.offer(whole)
        leads = batch is not None and batch.trace_id == traced.context.trace_id
        for part, begin, until in _parts(job.kind, phases):
            if leads and part == "worker":
                continue  # the span of the batch says the same
            links = (batch,) if batch is not None and part in WORKED else ()
            context = traced.context.child()
            self._export.offer(Span(part, context, traced.context, begin + epoch, until + epoch, {}, links=links))


def _parts(kind: str, phases: Phases) -> list[tuple[str, float, float]]:
    """Names, beginnings and ends of what took time."""
    parts = [("parse", phases.came, phases.enqueued), ("queue", phases.enqueued, phases.sent or phases.ended)]
    if phases.sent:
        text = kind == GENERATE
        parts += [
            ("batch wait", phases.sent, phases.begun),
            ("prefill" if text else "worker", phases.begun, phases.answered),
            ("decode" if text else "reply", phases.answered, phases.ended),
        ]
    return [(name, begin, end) for name, begin, end in parts if end - begin >= SHORTEST or name in WORKED]


def _parent(job: Any) -> TraceContext | None:
    """From the headers; that of a gRPC call is known to the job's sink. In a head that many requests share, it is
    looked for once."""
    headers = job.headers
    parent, state = headers.trace if isinstance(headers, KeptHeaders) else trace_headers(headers)
    if not parent:
        if (trace := getattr(job.sink, "trace", None)) is None:
            return None
        parent, state = trace
    return parsed(parent, state)


def _with_parent(headers: list[tuple[str, str]], context: TraceContext) -> list[tuple[str, str]]:
    others = [(name, value) for name, value in headers if name.lower() != PARENT]
    return [*others, (PARENT, context.header)]
