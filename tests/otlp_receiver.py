"""A collector of OpenTelemetry's protocol over HTTP, which keeps what it is sent."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class ReceivedSpan(NamedTuple):
    """Ids in hexadecimal; `parent` is "" for the first of a trace."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    error: str | None
    start: int
    end: int
    resource: dict[str, Any]
    events: list[str]
    state: str


class Collector:
    def __init__(self, address: tuple[str, int]) -> None:
        self.endpoint = f"http://{address[0]}:{address[1]}"
        self.spans: list[ReceivedSpan] = []

    def take(self, body: bytes) -> None:
        request = Parse(_as_protobuf(body), ExportTraceServiceRequest())  # which refuses members that it does not know
        for of_resource in request.resource_spans:
            resource = _values(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                self.spans += [_span(one, resource) for one in scope.spans]

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def children(self, of: ReceivedSpan) -> dict[str, ReceivedSpan]:
        return {span.name: span for span in self.spans if span.parent == of.id}


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            collector.take(body)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(("127.0.0.1", server.server_port))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _span(span: Any, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _values(span.attributes),
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        span.status.message if span.status.code == 2 else None,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        resource,
        [event.name for event in span.events],
        span.trace_state,
    )


def _as_protobuf(body: bytes) -> str:
    """OTLP's JSON has ids in hexadecimal, that of Protocol Buffers in base64."""
    return re.sub(rb'("(?:traceId|spanId|parentSpanId)":)"([0-9a-f]+)"', _base64, body).decode()


def _base64(found: re.Match[bytes]) -> bytes:
    return found[1] + b'"' + base64.b64encode(bytes.fromhex(found[2].decode())) + b'"'


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
