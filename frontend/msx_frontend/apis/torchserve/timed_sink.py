"""A reply that says where its time went: the header `Server-Timing` (W3C Server Timing), for who asks for it."""

from __future__ import annotations

import time

from msx_frontend.job import Job, Sink
from msx_frontend.metrics.phases import phases_of
from msx_frontend.net.http.family import ReplySink

ASKS = b"x-msx-timing"
"""A request with this header, whatever its value, is told."""
HEADER = "server-timing"


class TimedSink:
    """Stands around the sink of one job, which is to be set."""

    job: Job

    def __init__(self, sink: ReplySink) -> None:
        self.sink: Sink = sink
        self.chunk, self.end, self.fail = sink.chunk, sink.end, sink.fail

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self.sink.start(status, phrase, self._with_timing(headers))

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.sink.answer(status, phrase, self._with_timing(headers), data)

    def _with_timing(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return [*headers, (HEADER, timing(self.job, time.monotonic()))]


def timing(job: Job, now: float) -> str:
    """Milliseconds until the first byte of the handler's answer: `parse` the request, wait in the `queue`, wait in the
    worker's socket behind the `batch` before it, and the `handler` with the way to the worker and back."""
    phases = phases_of(job, now)
    sent = phases.sent or phases.answered
    instants = phases.came, phases.enqueued, sent, max(phases.begun, sent), phases.answered
    names = "parse", "queue", "batch", "handler"
    spent = zip(names, instants[:-1], instants[1:], strict=True)
    return ", ".join(f"{name};dur={max(after - before, 0) * 1000:.3f}" for name, before, after in spent)
