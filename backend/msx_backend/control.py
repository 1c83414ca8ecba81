"""The thread of the control socket: it answers pings, notes cancels and grants credit while the handler computes."""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
import time
from collections.abc import Sequence

from msx_backend.loop_watch import LOOP_BLOCKED_AFTER
from msx_backend.open_requests import OpenRequests
from msx_backend.pinged import PingedWorker
from msx_backend.supervisor_line import SupervisorLine
from msx_protocol import Cancel, Credit, FrameReader, Ping, Pong, ToWorkerControl, encode_frame

log = logging.getLogger("msx.worker")


class CallClock:
    """Measures how long the current handler call has run.

    `beside`: clocks of what runs on other threads at the same time; the longest counts.
    """

    def __init__(self, beside: Sequence[CallClock] = ()) -> None:
        self.started: float | None = None
        self.beside = beside

    def __enter__(self) -> None:
        self.started = time.monotonic()

    def __exit__(self, *exc: object) -> None:
        self.started = None

    @property
    def seconds(self) -> float:
        started = self.started
        own = 0.0 if started is None else time.monotonic() - started
        return max(own, *(clock.seconds for clock in self.beside)) if self.beside else own


class ControlThread(threading.Thread):
    """Ends the process when the server is gone, even while the handler computes."""

    def __init__(self, sock: socket.socket, jobs: OpenRequests, clock: CallClock) -> None:
        super().__init__(name="control", daemon=True)
        self._sock, self._jobs, self._clock = sock, jobs, clock
        self._reader: FrameReader[ToWorkerControl] = FrameReader(ToWorkerControl)
        self._worker: PingedWorker | None = None
        self.line: SupervisorLine | None = None
        """Where another frontend may follow one that crashes; None where the worker ends with its frontend."""

    def attach(self, worker: PingedWorker) -> None:
        """The worker has its Load: from now on it answers pings."""
        self._worker = worker

    def run(self) -> None:
        try:
            self._listen()
            while self.line is not None:
                self._jobs.orphan()
                if not self.line.reconnect(self._sock):
                    break
                self._reader = FrameReader(ToWorkerControl)
                if self._worker is not None:
                    self._worker.tell_again()
                self._listen()
        except Exception:
            log.exception("the control connection broke")
        os._exit(1)

    def _listen(self) -> None:
        poll = select.poll()  # not select(): an inherited descriptor may be beyond its 1024
        poll.register(self._sock, select.POLLIN)
        while True:
            watch = None if self._worker is None else self._worker.watch
            if watch is not None and not poll.poll(LOOP_BLOCKED_AFTER * 500):
                watch.tick()
                continue
            try:
                count = self._sock.recv_into(self._reader.space())
                for message, _ in self._reader.received(count):
                    self._handle(message)
            except ConnectionError:  # the frontend has crashed
                return
            if not count:
                return

    def _handle(self, message: ToWorkerControl) -> None:
        if isinstance(message, Cancel):
            self._jobs.cancel(message.numbers)
        elif isinstance(message, Credit):
            self._jobs.grant(message.number, message.limit)
        elif isinstance(message, Ping):
            self._sock.sendall(encode_frame(self._pong(message.sequence)))

    def _pong(self, sequence: int) -> Pong:
        seconds = self._clock.seconds
        return Pong(sequence, 0, seconds, []) if self._worker is None else self._worker.pong(sequence, seconds)
