"""The spans of one request: where each millisecond of it went."""

from __future__ import annotations

from collections.abc import Iterator

from msx_frontend.metrics.phases import Phases
from msx_frontend.tracing.batch_spans import TracedBatch
from msx_frontend.tracing.sampled_request import SampledRequest
from msx_frontend.tracing.span_texts import event, failed, new_id, parent_of, part_members, request_members, state_of
from msx_sdk._internal.tracing.otlp_json import json_of, span_of
from msx_sdk.generation import GENERATE

WORKED = ("worker", "prefill")
SHORTEST = 0.0001
"""Seconds: a part that took less is left out, but for the worker's."""


def spans_of(request: SampledRequest, epoch: float, batch: TracedBatch | None) -> list[bytes]:
    """The request's own, and its parts. `epoch`: seconds to add to the instants of phases."""
    trace, state, phases = request.traced.trace, state_of(request.traced.context), request.phases
    members = f"{_members(request, epoch)}{state}"
    found = [span_of(trace, request.own, phases.came + epoch, phases.ended + epoch, members)]
    linked = f',"links":[{batch.link}]' if batch is not None else ""
    leads = batch is not None and batch.trace == trace
    below = f",{parent_of(request.own)}{state}"
    for name, begin, end in _parts(request.kind, phases):
        if leads and name == "worker":
            continue  # the span of the batch says the same
        members = f"{part_members(name)}{below}{linked if name in WORKED else ''}"
        found.append(span_of(trace, new_id(), begin + epoch, end + epoch, members))
    return found


def _members(request: SampledRequest, epoch: float) -> str:
    """But for the state of the trace."""
    parent, answered = request.traced.parent, request.phases.answered
    text = f"{request_members(request.model, request.version, request.kind, request.status)}{json_of(request.id)}}}}}]"
    if parent is not None:
        text += f",{parent_of(parent.span)}"
    if request.kind == GENERATE and answered:
        text += event("first token", answered + epoch)
    return text if request.error is None else text + failed(request.error)


def _parts(kind: str, phases: Phases) -> Iterator[tuple[str, float, float]]:
    """Names, beginnings and ends of what took time."""
    _, came, enqueued, sent, begun, answered, ended, _ = phases
    if enqueued - came >= SHORTEST:
        yield "parse", came, enqueued
    if (sent or ended) - enqueued >= SHORTEST:
        yield "queue", enqueued, sent or ended
    if sent:
        if begun - sent >= SHORTEST:
            yield "batch wait", sent, begun
        yield "prefill" if kind == GENERATE else "worker", begun, answered
        if ended - answered >= SHORTEST:
            yield "decode" if kind == GENERATE else "reply", answered, ended
