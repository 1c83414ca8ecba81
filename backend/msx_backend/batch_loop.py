"""The main thread of a worker whose handler works on batches: read, run, write, nothing else."""

import time
from collections import deque
from typing import Protocol

from msx_backend.joined_batches import Frame, Frames, JoinedBatches
from msx_backend.late_replies import LateReplies
from msx_backend.worker_link import WorkerLink
from msx_core.batch import BatchSink
from msx_core.context import Context
from msx_protocol import Drain, Joined, Predict
from msx_sdk.request import InferenceRequest

SHORT = 200e-6
"""Seconds. After a call that took longer than this, replies are sent at once."""
GATHERED = 500e-6
"""Seconds for which replies of short calls are gathered into one write, while more requests wait."""


class RunsBatches(Protocol):
    """A `Runner`, or what runs the steps of a handler by itself."""

    context: Context

    def run(self, requests: list[InferenceRequest], sink: BatchSink, /) -> None: ...


class BatchLoop:
    def __init__(self, link: WorkerLink, runner: RunsBatches, batch_size: int = 1) -> None:
        self._sock, self._reader, self._jobs, self._replies, self._clock, self._reconnect = link
        self._runner = runner
        self._joining = JoinedBatches(link, batch_size)
        self._late = LateReplies(link.replies)
        self._flushed = 0.0

    def serve(self, early: Frames = ()) -> None:
        """Serves until Drain, or until the server is gone. `early` are messages that came together with Load."""
        self.start()
        going_on = self.handle(early)
        while going_on:
            going_on = self.receive()

    def start(self) -> None:
        self._late.start()

    def receive(self) -> bool:
        """Wait for requests and answer them. False after Drain, or once the server is gone."""
        # Of its own, so that nothing of a large request is referred to while the next one is waited for.
        try:
            count = self._sock.recv_into(self._reader.space())
        except ConnectionResetError:  # the frontend has crashed, with replies that it had not read
            count = 0
        return self.handle(self._reader.received(count)) if count else self._reconnect()

    def handle(self, frames: Frames) -> bool:
        """Answer the requests of these frames. False after Drain."""
        self._flushed = time.monotonic()
        try:
            waiting = deque(frames)
            while waiting:
                message, body = waiting.popleft()
                if isinstance(message, Predict):
                    requests = self._jobs.take(message, body)
                    if message.joins:
                        self._predict(self._joined(requests, waiting))
                    else:
                        self._predict_each(requests, message.size or len(requests))
                elif isinstance(message, Drain):
                    return False
        finally:
            self._replies.flush()
        return True

    def _predict_each(self, requests: list[InferenceRequest], size: int) -> None:
        """Predict in batches of `size`."""
        if size >= len(requests):
            return self._predict(requests)
        for start in range(0, len(requests), size):
            self._predict(requests[start : start + size])
        return None

    def _joined(self, requests: list[InferenceRequest], waiting: deque[Frame]) -> list[InferenceRequest]:
        """The requests of this batch with those of the next batches that may join it, also of batches that have come
        since the last read."""
        batches = self._joining.extend(requests, waiting)
        if batches > 1:
            self._replies.send(Joined(batches, requests[0].number))
        return requests

    def _predict(self, requests: list[InferenceRequest]) -> None:
        if not self._late.watching and self._replies.holds:
            self._late.watch()
        started = self._clock.started = time.monotonic()
        wanted = [request for request in requests if not request.cancelled]
        if wanted:
            self._runner.run(wanted, self._replies)
        self._clock.started, ended = None, time.monotonic()
        if wanted:
            self._runner.context.metrics.prediction_time(ended - started, [request.id for request in wanted])
        self._replies.drop_unanswered(requests)
        self._jobs.release(requests)
        if ended - started > SHORT or ended - self._flushed > GATHERED:
            self._replies.flush()
            self._flushed = ended
