"""Batches of a worker's socket that join the one which begins."""

import socket
from collections import deque
from collections.abc import Callable, Sequence

from msx_backend.worker_link import WorkerLink
from msx_protocol import Predict, ToWorker
from msx_sdk.request import InferenceRequest

Frame = tuple[ToWorker, bytearray]
Frames = Sequence[Frame]


class JoinedBatches:
    """Adds to the requests of a batch those of the next batches that may join it, up to `batch_size` requests."""

    def __init__(self, link: WorkerLink, batch_size: int) -> None:
        self._sock, self._reader, self._jobs = link.sock, link.reader, link.jobs
        self._batch_size = batch_size

    def extend(
        self, requests: list[InferenceRequest], waiting: deque[Frame], more_come: Callable[[], bool] | None = None
    ) -> int:
        """Take the batches that wait, also those that came since the last read. Returns how many there are in all.

        While there is room and nothing waits, `more_come` waits for more; it returns whether there are.
        """
        waiting += self._read()
        batches = 1 + (self._take(requests, waiting) if waiting else 0)
        while more_come is not None and not waiting and len(requests) < self._batch_size and more_come():
            waiting += self._read()
            batches += self._take(requests, waiting)
        return batches

    def _take(self, requests: list[InferenceRequest], waiting: deque[Frame]) -> int:
        batches = 0
        while waiting and self._fits(waiting[0][0], len(requests)):
            message, body = waiting.popleft()
            assert isinstance(message, Predict)
            requests += self._jobs.take(message, body)
            batches += 1
        return batches

    def _read(self) -> Frames:
        try:
            count = self._sock.recv_into(self._reader.space(), 0, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionResetError):
            return ()
        return self._reader.received(count)

    def _fits(self, message: ToWorker, size: int) -> bool:
        return isinstance(message, Predict) and message.joins and size + len(message.requests) <= self._batch_size
