"""Spans in the JSON encoding of OpenTelemetry's protocol.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: ids are hexadecimal, integers of 64 bits are texts.
The packages of OpenTelemetry are not used: they take half a millisecond for the spans of one request.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from msx_core.tracing.span import Span, Value

INTERNAL, SERVER = 1, 2
ERROR = 2
BILLION = 1_000_000_000
_encoded = msgspec.json.Encoder().encode


def request_of(spans: Iterable[bytes], resource: Mapping[str, Value]) -> bytes:
    """An ExportTraceServiceRequest of encoded spans. `resource` are the attributes of the process that made them."""
    attributes = json_of(attributes_of(resource)).encode()
    head = (
        b'{"resourceSpans":[{"resource":{"attributes":%b},"scopeSpans":[{"scope":{"name":"msx"},"spans":[' % attributes
    )
    return b"%b%b]}]}]}" % (head, b",".join(spans))


def encoded(span: Span) -> bytes:
    context = span.context
    members: dict[str, Any] = {"name": span.name, "kind": SERVER if span.kind == "server" else INTERNAL}
    if span.attributes:
        members["attributes"] = attributes_of(span.attributes)
    if context.state:
        members["traceState"] = context.state
    if span.parent is not None:
        members["parentSpanId"] = span.parent.span
    if span.links:
        members["links"] = [{"traceId": one.trace, "spanId": one.span} for one in span.links]
    if span.events:
        members["events"] = [{"timeUnixNano": str(int(when * BILLION)), "name": name} for name, when in span.events]
    if span.error is not None:
        members["status"] = {"code": ERROR, "message": span.error}
    return span_of(context.trace, context.span, span.start, span.end, json_of(members)[1:-1])


def span_of(trace: str, span: str, start: float, end: float, members: str) -> bytes:
    """One span of these ids; `members` are its others as JSON, without the braces."""
    return span_format(trace, span, f"{int(start * BILLION)}", f"{int(end * BILLION)}", members).encode()


def span_format(trace: str, span: str, start: str, end: str, members: str) -> str:
    """`start`, `end`: nanoseconds as texts."""
    ids = f'"traceId":"{trace}","spanId":"{span}"'
    return f'{{{ids},"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}",{members}}}'


def json_of(value: object) -> str:
    """Encode without what is not Unicode, from a path or a client: a collector would refuse all spans with it."""
    try:
        return _encoded(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()


def attributes_of(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
