"""Spans in the JSON encoding of OpenTelemetry's protocol.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: ids are hexadecimal, integers of 64 bits are texts.
The packages of OpenTelemetry are not used: they take half a millisecond for the spans of one request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from msx_sdk._internal.tracing.span import Span, Value

INTERNAL, SERVER = 1, 2
ERROR = 2
_BILLION = 1_000_000_000
_encoded = msgspec.json.Encoder().encode


def request_of(spans: Iterable[bytes], resource: Mapping[str, Value]) -> bytes:
    """An ExportTraceServiceRequest of encoded spans. `resource` are the attributes of the process that made them."""
    attributes = _encoded(_attributes(resource))
    head = (
        b'{"resourceSpans":[{"resource":{"attributes":%b},"scopeSpans":[{"scope":{"name":"msx"},"spans":[' % attributes
    )
    return b"%b%b]}]}]}" % (head, b",".join(spans))


def encoded(span: Span) -> bytes:
    context = span.context
    made: dict[str, Any] = {
        "traceId": context.trace,
        "spanId": context.span,
        "name": span.name,
        "kind": SERVER if span.kind == "server" else INTERNAL,
        "startTimeUnixNano": str(int(span.start * _BILLION)),
        "endTimeUnixNano": str(int(span.end * _BILLION)),
    }
    if span.attributes:
        made["attributes"] = _attributes(span.attributes)
    if context.state:
        made["traceState"] = context.state
    if span.parent is not None:
        made["parentSpanId"] = span.parent.span
    if span.links:
        made["links"] = [{"traceId": one.trace, "spanId": one.span} for one in span.links]
    if span.events:
        made["events"] = [{"timeUnixNano": str(int(when * _BILLION)), "name": name} for name, when in span.events]
    if span.error is not None:
        made["status"] = {"code": ERROR, "message": span.error}
    return _encoded(made)


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
