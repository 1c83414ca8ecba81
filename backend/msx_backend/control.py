"""The thread of the control socket: it answers pings, notes cancels and grants credit while the handler computes."""

import logging
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable

from msx_backend.open_requests import OpenRequests
from msx_protocol import (
    Cancel,
    Credit,
    FrameReader,
    MetricInfo,
    MetricSample,
    Ping,
    Pong,
    ToWorkerControl,
    encode_frame,
)
from msx_sdk.metrics import Metrics

log = logging.getLogger("msx.worker")

LOOP_BLOCKED_AFTER = 0.2
"""Seconds after which an async handler that blocks its loop is logged with its line."""


class CallClock:
    """Measures how long the current handler call has run."""

    def __init__(self) -> None:
        self.started: float | None = None

    def __enter__(self) -> None:
        self.started = time.monotonic()

    def __exit__(self, *exc: object) -> None:
        self.started = None

    @property
    def seconds(self) -> float:
        started = self.started
        return 0.0 if started is None else time.monotonic() - started


class LoopWatch:
    """Detects an async handler that blocks its loop: asks the loop for a call and checks whether it is made in time."""

    def __init__(
        self, ask: Callable[[Callable[[], None]], object], busy: Callable[[], bool], handler_dir: str = ""
    ) -> None:
        self._ask, self._busy, self._handler_dir = ask, busy, handler_dir
        self._asked_at: float | None = None
        self._main = threading.main_thread().ident or 0
        self._reported = False

    def tick(self) -> None:
        if self._asked_at is None:
            if self._busy():
                self._asked_at = time.monotonic()
                self._ask(self._answered)
        elif time.monotonic() - self._asked_at > LOOP_BLOCKED_AFTER and not self._reported:
            self._reported = True
            millis = LOOP_BLOCKED_AFTER * 1000
            log.warning("the handler blocks its event loop for more than %d ms at %s", millis, self._where())

    def _where(self) -> str:
        """The innermost line in the handler's own files, or in any file if none of them is on the stack."""
        stack = traceback.extract_stack(sys._current_frames().get(self._main))
        own = [line for line in stack if self._handler_dir and line.filename.startswith(self._handler_dir)]
        line = (own or stack)[-1]
        return f"{line.filename}:{line.lineno} in {line.name}"

    def _answered(self) -> None:
        self._asked_at, self._reported = None, False


class ControlThread(threading.Thread):
    """Ends the process when the server is gone, even while the handler computes."""

    def __init__(self, sock: socket.socket, jobs: OpenRequests, clock: CallClock) -> None:
        super().__init__(name="control", daemon=True)
        self._sock, self._jobs, self._clock = sock, jobs, clock
        self._reader: FrameReader[ToWorkerControl] = FrameReader(ToWorkerControl)
        self.progress: Callable[[], int] = lambda: 0
        self.collectives: Callable[[], dict[str, int]] = dict
        self.metrics: Metrics | None = None
        self.watch: LoopWatch | None = None
        self.on_ping: list[Callable[[], None]] = []
        """Callables to run about once a second."""
        self._dropped = 0

    def run(self) -> None:
        try:
            self._listen()
        except Exception:
            log.exception("the control connection broke")
        os._exit(1)

    def _listen(self) -> None:
        poll = select.poll()  # not select(): an inherited descriptor may be beyond its 1024
        poll.register(self._sock, select.POLLIN)
        while True:
            if self.watch is not None and not poll.poll(LOOP_BLOCKED_AFTER * 500):
                self.watch.tick()
                continue
            count = self._sock.recv_into(self._reader.space())
            if not count:
                return
            for message, _ in self._reader.received(count):
                self._handle(message)

    def _handle(self, message: ToWorkerControl) -> None:
        if isinstance(message, Cancel):
            self._jobs.cancel(message.numbers)
        elif isinstance(message, Credit):
            self._jobs.grant(message.number, message.limit)
        elif isinstance(message, Ping):
            for call in self.on_ping:
                call()
            counts = self.collectives()
            samples = self._samples()  # before the forms, of which one may be newer than its first sample
            pong = Pong(message.sequence, self.progress(), self._clock.seconds, samples, counts, self._forms())
            self._sock.sendall(encode_frame(pong))

    def _forms(self) -> list[MetricInfo]:
        return [] if self.metrics is None else [MetricInfo(*form) for form in self.metrics.descriptors.take()]

    def _samples(self) -> list[MetricSample]:
        if self.metrics is None:
            return []
        taken = self.metrics.take()
        if lost := self.metrics.dropped - self._dropped:
            self._dropped += lost
            log.warning("%d metric samples are lost: between two pings a worker keeps %d", lost, self.metrics.LIMIT)
        return [MetricSample(s.name, s.kind, s.unit, s.value, list(s.labels), s.request_id) for s in taken]
