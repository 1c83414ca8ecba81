"""The members of spans as JSON. What many requests have in common is made once: each of them would cost as much as a
tenth of a short prediction.

Attributes follow OpenTelemetry's semantic conventions where they have a name for it.
"""

from __future__ import annotations

from functools import lru_cache
from random import getrandbits

from msx_sdk._internal.tracing.otlp_json import BILLION, ERROR, INTERNAL, SERVER, attributes_of, json_of
from msx_sdk._internal.tracing.span import Value
from msx_sdk._internal.tracing.trace_context import TraceContext

KEPT = 1024
"""Texts of one kind."""
BATCH = f'"name":"batch","kind":{INTERNAL}'


@lru_cache(KEPT)
def request_members(model: str, version: str, kind: str, status: int) -> str:
    """The name, the kind and the attributes, but for the request's id as JSON and the brackets behind it."""
    attributes = {**_model(model, version), "msx.operation": kind, "http.response.status_code": status}
    name = json_of(f"{kind or 'predict'} {model}")
    known = json_of(attributes_of(attributes))[:-1]
    return f'"name":{name},"kind":{SERVER},"attributes":{known},{{"key":"msx.request.id","value":{{"stringValue":'


@lru_cache(KEPT)
def batch_attributes(model: str, version: str, size: int) -> str:
    return f'"attributes":{json_of(attributes_of({**_model(model, version), "msx.batch.size": size}))}'


@lru_cache(KEPT)
def part_members(name: str) -> str:
    return f'"name":{json_of(name)},"kind":{INTERNAL}'


def parent_of(span: str) -> str:
    return f'"parentSpanId":"{span}"'


def link_to(trace: str, span: str) -> str:
    return f'{{"traceId":"{trace}","spanId":"{span}"}}'


def state_of(context: TraceContext) -> str:
    """With a comma before it; "" for none."""
    return f',"traceState":{json_of(context.state)}' if context.state else ""


def event(name: str, when: float) -> str:
    return f',"events":[{{"timeUnixNano":"{int(when * BILLION)}","name":{json_of(name)}}}]'


def failed(why: str) -> str:
    return f',"status":{{"code":{ERROR},"message":{json_of(why)}}}'


def new_id() -> str:
    """Of a span, in hexadecimal."""
    return f"{getrandbits(64) or 1:016x}"


def _model(model: str, version: str) -> dict[str, Value]:
    return {"msx.model.name": model, "msx.model.version": version}
