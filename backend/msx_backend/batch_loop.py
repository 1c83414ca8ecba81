"""The main thread of a worker whose handler works on batches: read, run, write, nothing else."""

import socket
import time
from collections import deque
from collections.abc import Sequence

from msx_backend.late_replies import LateReplies
from msx_backend.worker_link import WorkerLink
from msx_protocol import Drain, Joined, Predict, ToWorker
from msx_sdk.request import InferenceRequest
from msx_sdk.runner import Runner

Frame = tuple[ToWorker, bytearray]
Frames = Sequence[Frame]

SHORT = 200e-6
"""Seconds. After a call that took longer than this, replies are sent at once."""
GATHERED = 500e-6
"""Seconds for which replies of short calls are gathered into one write, while more requests wait."""


class BatchLoop:
    def __init__(self, link: WorkerLink, runner: Runner, batch_size: int = 1) -> None:
        self._sock, self._reader, self._jobs, self._replies, self._clock = link
        self._runner = runner
        self._batch_size = batch_size
        self._late = LateReplies(link.replies)
        self._flushed = 0.0

    def serve(self, early: Frames = ()) -> None:
        """Serves until Drain, or until the server is gone. `early` are messages that came together with Load."""
        self._late.start()
        going_on = self._handle(early)
        while going_on:
            going_on = self._receive()

    def _receive(self) -> bool:
        # Of its own, so that nothing of a large request is referred to while the next one is waited for.
        count = self._sock.recv_into(self._reader.space())
        return count > 0 and self._handle(self._reader.received(count))

    def _handle(self, frames: Frames) -> bool:
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
        waiting += self._more()
        batches = 1
        while waiting and self._fits(waiting[0][0], len(requests)):
            message, body = waiting.popleft()
            assert isinstance(message, Predict)
            requests += self._jobs.take(message, body)
            batches += 1
        if batches > 1:
            self._replies.send(Joined(batches))
        return requests

    def _more(self) -> Frames:
        try:
            count = self._sock.recv_into(self._reader.space(), 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return ()
        return self._reader.received(count)

    def _fits(self, message: ToWorker, size: int) -> bool:
        return isinstance(message, Predict) and message.joins and size + len(message.requests) <= self._batch_size

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
