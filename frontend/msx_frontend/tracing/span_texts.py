"""The members of spans as JSON. What many requests have in common is made once: each of them would cost as much as a
tenth of a short prediction.

Attributes follow OpenTelemetry's semantic conventions where they have a name for it.
"""

from functools import lru_cache
from random import getrandbits

from msx_core.tracing.otlp_json import (
    BILLION,
    ERROR,
    INTERNAL,
    SERVER,
    attributes_of,
    json_of,
    span_format,
)
from msx_core.tracing.span import Value
from msx_core.tracing.trace_context import TraceContext

KEPT = 1024
"""Texts of one kind."""
WORKED = ("worker", "prefill")
BATCH = "batch"
LASTS = {
    "parse": ("came", "enqueued"),
    "queue": ("enqueued", "sent"),
    "batch wait": ("sent", "begun"),
    "worker": ("begun", "answered"),
    "prefill": ("begun", "answered"),
    "reply": ("answered", "ended"),
    "decode": ("answered", "ended"),
    BATCH: ("begun", "batch answered"),
}
"""The instants between which a part lasts."""


@lru_cache(KEPT)
def tree(
    model: str, version: str, operation: str, status: int, parts: tuple[str, ...], has_batch: bool, batch_size: int
) -> str:
    """The spans of a request, a line each: a format of its ids, of its instants in nanoseconds, and of the members
    that it alone has. The id of a part is in the format by the part's name."""
    links = ',"links":[%(link)s]' if has_batch else ""
    lines = [_span("own", "came", "ended", f"{_own(model, version, operation, status)}%(state)s%(more)s")]
    for name in parts:
        members = f'"name":{json_of(name)},"kind":{INTERNAL},{parent_of("%(own)s")}%(state)s'
        own = _batch(model, version, batch_size) if name == BATCH else links if name in WORKED else ""
        lines.append(_span(name, *LASTS[name], f"{members}{own}"))
    return "\n".join(lines)


def _batch(model: str, version: str, size: int) -> str:
    attributes = json_of(attributes_of({**_model(model, version), "msx.batch.size": size})).replace("%", "%%")
    return f',"attributes":{attributes},"links":[%(links)s]'


def _span(name: str, start: str, end: str, members: str) -> str:
    return span_format("%(trace)s", f"%({name})s", f"%({start})d", f"%({end})d", members)


def _own(model: str, version: str, operation: str, status: int) -> str:
    """The name, the kind and the attributes."""
    attributes = {**_model(model, version), "msx.operation": operation, "http.response.status_code": status}
    name = json_of(f"{operation} {model}").replace("%", "%%")
    known = json_of(attributes_of(attributes))[:-1].replace("%", "%%")
    id = '{"key":"msx.request.id","value":{"stringValue":%(request)s}}'
    return f'"name":{name},"kind":{SERVER},"attributes":{known},{id}]'


def parent_of(span: str) -> str:
    return f'"parentSpanId":"{span}"'


def link_to(trace: str, span: str) -> str:
    return f'{{"traceId":"{trace}","spanId":"{span}"}}'


def state_of(context: TraceContext) -> str:
    """Text with a comma before it; "" for none."""
    return f',"traceState":{json_of(context.state)}' if context.state else ""


def event(name: str, when: float) -> str:
    return f',"events":[{{"timeUnixNano":"{int(when * BILLION)}","name":{json_of(name)}}}]'


def failed(why: str) -> str:
    return f',"status":{{"code":{ERROR},"message":{json_of(why)}}}'


def new_ids(count: int) -> list[str]:
    """New span ids, in hexadecimal: pieces of one number. 0, which is not an id, does not happen: 2**-64."""
    text = f"{getrandbits(64 * count):0{16 * count}x}" if count else ""
    return [text[at : at + 16] for at in range(0, 16 * count, 16)]


def _model(model: str, version: str) -> dict[str, Value]:
    return {"msx.model.name": model, "msx.model.version": version} if version else {"msx.model.name": model}
