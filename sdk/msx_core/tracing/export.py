"""Sends spans to a collector, from a thread, many at once."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from urllib.parse import unquote

from msx_core.tracing.collector import Collector, SpansRefused
from msx_core.tracing.otlp_json import encoded, request_of
from msx_core.tracing.span import Span, Value

log = logging.getLogger("msx.tracing")

QUEUE, BATCH, DELAY = 2048, 512, 5000
"""Spans that wait, spans of one request, and milliseconds until they are sent: OpenTelemetry's, OTEL_BSP_* changes
them."""
TRIES, PAUSE = 3, 1.0
"""Tries to send the same spans, and the seconds between two, which double."""
QUIET = 60.0
"""Seconds after a warning in which a collector that comes and goes is not told of again."""


class SpanExport:
    """`offer` never waits: what finds the queue full is dropped and counted."""

    def __init__(self, endpoint: str, service: str, attributes: Mapping[str, Value] | None = None) -> None:
        """`endpoint` is empty where the environment names one. Raises ValueError, OSError."""
        env = os.environ
        self._collector = Collector(endpoint, env)
        self._resource = {"service.name": service, **_resource(env), **(attributes or {})}
        self._most = _number("OTEL_BSP_MAX_QUEUE_SIZE", QUEUE)
        self._batch = min(_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH), self._most)
        self._delay = _number("OTEL_BSP_SCHEDULE_DELAY", DELAY) / 1000
        self._waiting: deque[bytes] = deque()
        self._wake, self._closed = threading.Event(), threading.Event()
        self._failing, self._warned = False, -QUIET
        self._sending = 0
        self.exported = self.failed = self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="msx-spans", daemon=True)
        self._thread.start()

    def offer(self, span: Span) -> None:
        if len(self._waiting) >= self._most:
            self.dropped += 1
        else:
            self.offer_all([encoded(span)])

    def offer_all(self, spans: list[bytes]) -> None:
        """Encoded spans: a thread that encoded them would keep the event loop waiting for the GIL."""
        waiting = len(self._waiting)
        taken = spans[: max(self._most - waiting, 0)]
        self.dropped += len(spans) - len(taken)
        self._waiting += taken
        if waiting < self._batch <= waiting + len(taken):
            self._wake.set()

    def close(self, limit: float) -> None:
        """Sends what waits, for at most `limit` seconds; what is left then is lost, and told."""
        self._closed.set()
        self._wake.set()
        self._thread.join(limit)
        if left := len(self._waiting) + self._sending:
            log.warning("%d spans were not sent to %s within %g s, and are lost.", left, self._collector.shown, limit)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.wait(self._delay)
            self._wake.clear()
            self._send_all()
        self._send_all()  # what came between the last look and the end
        self._collector.close()

    def _send_all(self) -> None:
        while self._waiting:
            self._sending = min(len(self._waiting), self._batch)
            self._send([self._waiting.popleft() for _ in range(self._sending)])
            self._sending = 0

    def _send(self, spans: list[bytes]) -> None:
        body, pause = request_of(spans, self._resource), PAUSE
        for number in range(1, TRIES + 1):
            try:
                self._collector.send(body)
            except SpansRefused as error:
                self._told(error)
                if not error.again or number == TRIES or self._closed.wait(pause):
                    break
                pause *= 2
            else:
                self.exported += len(spans)
                self._failing = False
                return
        self.failed += len(spans)

    def _told(self, error: SpansRefused) -> None:
        """Warn about the first of successive failures."""
        now = time.monotonic()
        if not self._failing and now - self._warned >= QUIET:
            self._warned = now
            log.warning(
                "Spans cannot be sent to %s: %s. They are lost until it takes them, which is not said again.",
                self._collector.shown,
                error,
            )
        self._failing = True


def _resource(env: Mapping[str, str]) -> dict[str, Value]:
    pairs = (pair.partition("=") for pair in env.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",") if "=" in pair)
    found: dict[str, Value] = {name.strip(): unquote(value.strip()) for name, _, value in pairs}
    return found | ({"service.name": env["OTEL_SERVICE_NAME"]} if env.get("OTEL_SERVICE_NAME") else {})


def _number(name: str, default: int) -> int:
    """A variable's number; what is not above 0 counts as not set, as OpenTelemetry says."""
    text = os.environ.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else default
