"""Sends spans to a collector, by OpenTelemetry's SDK and its OTLP exporters.

The standard variables OTEL_EXPORTER_OTLP_*, OTEL_BSP_*, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are obeyed. An
endpoint of our own is one of OTLP over HTTP, unless OTEL_EXPORTER_OTLP_PROTOCOL says `grpc`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from msx_sdk._internal.tracing.span import Span
from msx_sdk._internal.tracing.trace_context import TraceContext

log = logging.getLogger("msx.tracing")

ENDPOINT, PROTOCOL = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
QUEUE = 2048
"""Spans that wait, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise."""
LIMIT = 5.0
"""Seconds for one export, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise."""
_NOISY = ("opentelemetry.exporter", "opentelemetry.sdk")
_KINDS = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER}
_BILLION = 1_000_000_000


class SpanExport:
    """`offer` never waits: what finds the queue full is dropped and counted."""

    def __init__(self, endpoint: str, service: str, attributes: Mapping[str, Any] | None = None) -> None:
        """`endpoint` is empty where the environment names one. Raises ImportError, ValueError."""
        resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME", service), **(attributes or {})}
        self._resource = Resource.create(resource)
        self._counting = _Counting(_exporter(endpoint), endpoint or os.environ.get(ENDPOINT, ""))
        self._most = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE))
        for name in _NOISY:
            logging.getLogger(name).setLevel(logging.CRITICAL)  # they tell of every failed attempt
        self._processor = BatchSpanProcessor(self._counting, max_queue_size=self._most)
        self._scope = InstrumentationScope("msx")
        self._offered = self.dropped = 0

    @property
    def exported(self) -> int:
        return self._counting.counts["exported"]

    @property
    def failed(self) -> int:
        return self._counting.counts["failed"]

    def offer(self, span: Span) -> None:
        if self._offered - self._counting.counts.total() >= self._most:
            self.dropped += 1
            return
        self._offered += 1
        self._processor.on_end(self._readable(span))

    def close(self, limit: float) -> None:
        """Sends what waits, for at most `limit` seconds."""
        ending = threading.Thread(target=self._processor.shutdown, name="msx-spans-end", daemon=True)
        ending.start()
        ending.join(limit)

    def _readable(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            _context(span.context),
            None if span.parent is None else _context(span.parent, remote=True),
            self._resource,
            span.attributes,
            [Event(name, timestamp=_nanos(when)) for name, when in span.events],
            [Link(_context(link)) for link in span.links],
            _KINDS[span.kind],
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=_nanos(span.start),
            end_time=_nanos(span.end),
            instrumentation_scope=self._scope,
        )


class _Counting(SpanExporter):
    """Tells of the first failure of a row of them."""

    def __init__(self, exporter: SpanExporter, endpoint: str) -> None:
        self._exporter, self._endpoint, self._failing = exporter, endpoint, False
        self.counts: Counter[str] = Counter()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:
            result = SpanExportResult.FAILURE
        good = result is SpanExportResult.SUCCESS
        self.counts["exported" if good else "failed"] += len(spans)
        if not good and not self._failing:
            log.warning(
                "Spans cannot be sent to %s: they are lost until it answers, which is told once.", self._endpoint
            )
        self._failing = not good
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def _exporter(endpoint: str) -> SpanExporter:
    timeout = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else LIMIT
    made: SpanExporter
    if os.environ.get(PROTOCOL, "http/protobuf").strip() == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

        insecure = endpoint.startswith("http://") or None
        made = OverGrpc(endpoint or None, insecure=insecure, timeout=timeout)
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp

        made = OverHttp(f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None, timeout=timeout)
    return made


def _context(context: TraceContext, *, remote: bool = False) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT)
    return SpanContext(context.trace_id, context.span_id, remote, flags, TraceState.from_header([context.state]))


def _nanos(seconds: float) -> int:
    return int(seconds * _BILLION)
