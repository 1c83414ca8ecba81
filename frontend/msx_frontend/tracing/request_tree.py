"""The spans of one request: where each millisecond of it went."""

from msx_core.generation import GENERATE
from msx_core.tracing.otlp_json import BILLION, json_of
from msx_frontend.metrics.phases import Phases
from msx_frontend.tracing.sampled_request import SampledRequest
from msx_frontend.tracing.span_texts import BATCH, event, failed, new_ids, parent_of, state_of, tree
from msx_frontend.tracing.traced_batches import TracedBatch

SHORTEST = 0.0001
"""Seconds: a part that took less is left out, but for the worker's."""


def spans_of(request: SampledRequest, epoch: float, batch: TracedBatch | None) -> list[bytes]:
    """The request's own, its parts, and its batch where it is the first of it. `epoch`: seconds to add to the instants
    of phases."""
    context, phases = request.context, request.phases
    leads, size = batch is not None and batch.first is request, 0
    parts = _parts(request, leads)
    values: dict[str, object] = dict(zip(parts, new_ids(len(parts)), strict=True))
    for name, instant in zip(_INSTANTS, phases[1:7], strict=True):
        values[name] = int((instant + epoch) * BILLION)
    if not phases.sent:
        values["sent"] = values["ended"]
    values["trace"], values["own"], values["state"] = context.trace, context.span, state_of(context)
    values["request"], values["more"] = json_of(request.id), _more(request, epoch)
    if batch is not None:
        values["link"] = batch.link
        if leads:
            size = max(phases.batch, len(batch.links))
            values[BATCH], values["links"] = batch.span, ",".join(batch.links)
            values["batch answered"] = int((batch.end + epoch) * BILLION)
            parts = *parts, BATCH
    text = tree(request.model, request.version, request.operation, request.status, parts, batch is not None, size)
    return (text % values).encode().split(b"\n")


_INSTANTS = Phases._fields[1:7]


def _more(request: SampledRequest, epoch: float) -> str:
    """Members of the request's own span that few have."""
    parent, answered = request.parent, request.phases.answered
    text = f",{parent_of(parent.span)}" if parent is not None else ""
    if request.operation == GENERATE and answered:
        text += event("first token", answered + epoch)
    return text if request.error is None else text + failed(request.error)


def _parts(request: SampledRequest, leads: bool) -> tuple[str, ...]:
    """The names of what took time. The span of a batch says the same as that of its first request's worker."""
    _, came, enqueued, sent, begun, answered, ended, _ = request.phases
    parts = ["parse"] if enqueued - came >= SHORTEST else []
    if (sent or ended) - enqueued >= SHORTEST:
        parts.append("queue")
    if sent and request.group is not None:
        if begun - sent >= SHORTEST:
            parts.append("batch wait")
        text = request.operation == GENERATE
        if text or not leads:
            parts.append("prefill" if text else "worker")
        if ended - answered >= SHORTEST:
            parts.append("decode" if text else "reply")
    return tuple(parts)
