"""The spans of one request: where each millisecond of it went."""

from __future__ import annotations

from msx_frontend.metrics.phases import Phases
from msx_frontend.tracing.batch_spans import TracedBatch
from msx_frontend.tracing.sampled_request import SampledRequest
from msx_frontend.tracing.span_texts import event, failed, new_ids, parent_of, state_of, tree
from msx_sdk._internal.tracing.otlp_json import BILLION, json_of
from msx_sdk.generation import GENERATE

SHORTEST = 0.0001
"""Seconds: a part that took less is left out, but for the worker's."""


def spans_of(request: SampledRequest, epoch: float, batch: TracedBatch | None) -> list[bytes]:
    """The request's own, and its parts. `epoch`: seconds to add to the instants of phases."""
    traced, phases = request.traced, request.phases
    # The span of a batch says the same as that of its first request's worker.
    leads = batch is not None and batch.trace == traced.trace
    parts = _parts(request.kind, phases, leads)
    text = tree(request.model, request.version, request.kind, request.status, parts, batch is not None)
    values: dict[str, object] = dict(zip(parts, new_ids(len(parts)), strict=True))
    for name, instant in zip(Phases._fields[1:7], phases[1:7], strict=True):
        values[name] = int((instant + epoch) * BILLION)
    if not phases.sent:
        values["sent"] = values["ended"]
    values["trace"], values["own"], values["state"] = traced.trace, request.own, state_of(traced.context)
    values["request"], values["more"] = json_of(request.id), _more(request, epoch)
    values["batch"] = batch.link if batch is not None else ""
    return (text % values).encode().split(b"\n")


def _more(request: SampledRequest, epoch: float) -> str:
    """Members of the request's own span that few have."""
    parent, answered = request.traced.parent, request.phases.answered
    text = f",{parent_of(parent.span)}" if parent is not None else ""
    if request.kind == GENERATE and answered:
        text += event("first token", answered + epoch)
    return text if request.error is None else text + failed(request.error)


def _parts(kind: str, phases: Phases, leads: bool) -> tuple[str, ...]:
    """The names of what took time."""
    _, came, enqueued, sent, begun, answered, ended, _ = phases
    parts = ["parse"] if enqueued - came >= SHORTEST else []
    if (sent or ended) - enqueued >= SHORTEST:
        parts.append("queue")
    if sent:
        if begun - sent >= SHORTEST:
            parts.append("batch wait")
        if kind == GENERATE or not leads:
            parts.append("prefill" if kind == GENERATE else "worker")
        if ended - answered >= SHORTEST:
            parts.append("decode" if kind == GENERATE else "reply")
    return tuple(parts)
