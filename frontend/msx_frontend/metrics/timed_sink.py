"""A reply that says where its time went: the header `Server-Timing` (W3C Server Timing), for who asks for it."""

import time
from collections.abc import Sequence

from msx_core.replies.sink import Sink
from msx_frontend.job import Job
from msx_frontend.metrics.phases import phases_of
from msx_net.http.event_reply import HTTP

HEADER = "server-timing"
_ASKS = b"x-msx-timing"

Headers = list[tuple[str, str]]


def asks_for_timing(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a request has the header that asks for it, whatever its value."""
    return any(name == _ASKS for name, _ in headers)


class TimedSink:
    """Stands around the sink of a reply."""

    job: Job | None = None
    """Which it tells of: the first, where a request has several. Set when it is known; a reply without one says
    nothing."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.chunk, self.end, self.fail = sink.chunk, sink.end, sink.fail
        self.known = getattr(sink, HTTP, None)

    def start(self, status: int, phrase: str, headers: Headers) -> None:
        self.sink.start(status, phrase, self._with_timing(headers))

    def answer(self, status: int, phrase: str, headers: Headers, data: bytes) -> None:
        self.sink.answer(status, phrase, self._with_timing(headers), data)

    def _with_timing(self, headers: Headers) -> Headers:
        job, self.job = self.job, None  # a job knows its sink: both would wait for the collector of cycles
        return headers if job is None else [*headers, (HEADER, timing(job, time.monotonic()))]


def timing(job: Job, now: float) -> str:
    """Milliseconds: to `parse` the request, its wait in the `queue`, in the worker's socket behind the `batch` before
    it, the `handler` until the first byte of its answer, and the `rest` until the reply begins: a whole one of several
    tokens begins with the last of them."""
    phases = phases_of(job, now)
    sent = phases.sent or phases.answered
    instants = phases.came, phases.enqueued, sent, max(phases.begun, sent), phases.answered, phases.ended
    names = "parse", "queue", "batch", "handler", "rest"
    spent = zip(names, instants[:-1], instants[1:], strict=True)
    return ", ".join(f"{name};dur={max(after - before, 0) * 1000:.3f}" for name, before, after in spent)
