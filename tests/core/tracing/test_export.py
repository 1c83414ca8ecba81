"""Spans on their way to a collector: how they are written, and what happens when it does not take them."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from typing import Any

import pytest

from msx_core.tracing import export
from msx_core.tracing.collector import Collector, SpansRefused
from msx_core.tracing.export import SpanExport
from msx_core.tracing.otlp_json import encoded, request_of
from msx_core.tracing.span import Span
from msx_core.tracing.trace_context import TraceContext
from msx_sdk import tracing

CONTEXT = TraceContext(f"{1:032x}", f"{2:016x}", True, "a=b")
URL = "http://127.0.0.1:4318"
SPAN = Span("n", CONTEXT, CONTEXT._replace(span=f"{3:016x}"), 1.5, 2.5, {"t": "x", "i": 5, "f": 0.5, "b": True})


def test_how_a_span_is_written() -> None:
    told = Span(*SPAN[:6], kind="server", links=(CONTEXT,), error="why", events=(("e", 2.0),))
    body: dict[str, Any] = json.loads(request_of([encoded(told)], {"service.name": "s"}))
    [of_resource] = body["resourceSpans"]
    assert of_resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "s"}}]
    [span] = of_resource["scopeSpans"][0]["spans"]
    assert span == {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "2",
        "parentSpanId": "0" * 15 + "3",
        "traceState": "a=b",
        "name": "n",
        "kind": 2,
        "startTimeUnixNano": "1500000000",
        "endTimeUnixNano": "2500000000",
        "attributes": [
            {"key": "t", "value": {"stringValue": "x"}},
            {"key": "i", "value": {"intValue": "5"}},
            {"key": "f", "value": {"doubleValue": 0.5}},
            {"key": "b", "value": {"boolValue": True}},
        ],
        "links": [{"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "2"}],
        "events": [{"timeUnixNano": "2000000000", "name": "e"}],
        "status": {"code": 2, "message": "why"},
    }


@pytest.mark.parametrize(
    ("endpoint", "env", "url"),
    [
        (URL, {}, f"{URL}/v1/traces"),
        (f"{URL}/", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other:1"}, f"{URL}/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{URL}/otlp"}, f"{URL}/otlp/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{URL}/as-it-is"}, f"{URL}/as-it-is"),
    ],
)
def test_where_they_go(endpoint: str, env: dict[str, str], url: str) -> None:
    assert Collector(endpoint, env).url == url


@pytest.mark.parametrize("endpoint", ["", "ftp://host", "http://"])
def test_what_is_not_an_endpoint(endpoint: str) -> None:
    with pytest.raises(ValueError, match="is not a URL of http or https"):
        Collector(endpoint, {})


class FakeConnection:
    def __init__(self, *statuses: int) -> None:
        self.statuses, self.sent = [*statuses], list[tuple[bytes, dict[str, str]]]()
        self.status = 0

    def request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
        self.status = self.statuses.pop(0)
        self.sent.append((body, headers))
        if self.status == 0:
            raise ConnectionRefusedError("nobody")

    def getresponse(self) -> FakeConnection:
        return self

    def read(self, size: int) -> bytes:
        return b""

    def isclosed(self) -> bool:
        return True

    def close(self) -> None: ...


def collector_of(*statuses: int, **env: str) -> tuple[Collector, FakeConnection]:
    made: Any = Collector(URL, {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in env.items()})
    made._connection = FakeConnection(*statuses)
    return made, made._connection


def test_headers_and_compression() -> None:
    collector, connection = collector_of(200, HEADERS="Authorization=Bearer%20x, a=b", COMPRESSION="gzip")
    collector.send(b"body")
    [(body, headers)] = connection.sent
    assert gzip.decompress(body) == b"body"
    assert headers["authorization"] == "Bearer x"
    assert (headers["a"], headers["content-encoding"]) == ("b", "gzip")


@pytest.mark.parametrize(("status", "again"), [(0, True), (429, True), (503, True), (400, False), (404, False)])
def test_what_may_be_sent_again(status: int, again: bool) -> None:
    with pytest.raises(SpansRefused) as refused:
        collector_of(status)[0].send(b"")
    assert refused.value.again is again


@pytest.mark.parametrize(
    ("statuses", "exported", "failed"), [([503, 503, 200], 1, 0), ([503, 0, 429], 0, 1), ([400], 0, 1)]
)
def test_tries(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    statuses: list[int],
    exported: int,
    failed: int,
) -> None:
    monkeypatch.setattr(export, "PAUSE", 0.001)
    made: Any = SpanExport(URL, "s")
    made._collector, connection = collector_of(*statuses)
    with caplog.at_level(logging.WARNING):
        made._send([encoded(SPAN)])
    assert (made.exported, made.failed, connection.statuses) == (exported, failed, [])
    assert caplog.text.count("Spans cannot be sent") == 1
    made.close(5)


def test_a_collector_that_comes_and_goes_is_told_of_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: Any = SpanExport(URL, "s")
    made._collector, _ = collector_of(*[400, 200] * 3, 400)
    for _ in range(6):
        made._send([encoded(SPAN)])
    assert (made.exported, made.failed) == (3, 3)
    assert caplog.text.count("Spans cannot be sent") == 1
    monkeypatch.setattr(export, "QUIET", 0.0)
    made._send([encoded(SPAN)])
    assert caplog.text.count("Spans cannot be sent") == 2
    made.close(5)


def test_what_is_left_at_the_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The collector takes the connection, and never answers."""
    silent, answer = threading.Event(), threading.Event()
    made: Any = SpanExport(URL, "s")
    made._collector, connection = collector_of(200, 200)

    def getresponse() -> FakeConnection:
        silent.set()
        answer.wait(30)
        return connection

    connection.getresponse = getresponse  # type: ignore[method-assign]
    made.offer(SPAN)
    made.offer(SPAN)
    made._wake.set()
    assert silent.wait(30)
    made.offer(SPAN)
    made.close(0.01)
    assert "3 spans were not sent to http://127.0.0.1:4318/v1/traces within 0.01 s, and are lost." in caplog.text
    answer.set()
    made._thread.join(30)


def test_a_full_queue_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "many")
    made: Any = SpanExport(URL, "s")
    made._batch = 100  # nothing wakes it
    made._collector, connection = collector_of(200)
    for _ in range(3):
        made.offer(SPAN)
    assert made.dropped == 1
    made.close(5)
    assert (made.exported, len(connection.sent)) == (2, 1), "what waited was sent at the end"


def test_no_secret_of_an_endpoint_is_told(caplog: pytest.LogCaptureFixture) -> None:
    made: Any = SpanExport("http://me:secret@127.0.0.1:1/at?token=secret", "s")
    made._collector._connection = FakeConnection(400)
    made._send([encoded(SPAN)])
    made.close(5)
    assert "http://127.0.0.1:1/at" in caplog.text
    with pytest.raises(ValueError, match="is not a URL") as refused:
        Collector("ftp://me:secret@host", {})
    assert "secret" not in caplog.text + str(refused.value)


def test_what_comes_with_the_end_is_sent() -> None:
    made: Any = SpanExport(URL, "s")
    made._collector, connection = collector_of(200)
    made._closed.set()
    made._wake.set()
    made._thread.join(60)
    made._waiting.append(encoded(SPAN))
    made._run()
    assert (made.exported, len(connection.sent)) == (1, 1)


def test_settings_that_cannot_be_used_do_not_fail_a_handler(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", URL)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")
    monkeypatch.setattr(tracing, "ENABLED", True)
    monkeypatch.setattr(tracing, "_exports", [])
    monkeypatch.setattr(tracing, "traced_requests", lambda: (CONTEXT,))
    for _ in range(2):
        with tracing.span("a"):
            pass
    assert caplog.text.count("The spans of this worker are not sent") == 1
