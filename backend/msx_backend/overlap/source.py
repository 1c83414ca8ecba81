"""The batches that come over a worker's socket, one by one."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from msx_backend.joined_batches import Frame, JoinedBatches
from msx_backend.worker_link import WorkerLink
from msx_protocol import Drain, Predict
from msx_sdk.request import InferenceRequest


class NextBatch(NamedTuple):
    """The requests of a batch, and how many batches of the server they are."""

    requests: list[InferenceRequest]
    batches: int = 1


class BatchSource:
    """Used by one thread at a time."""

    def __init__(self, link: WorkerLink, batch_size: int) -> None:
        self._sock, self._reader, self._jobs, self._reconnect = link.sock, link.reader, link.jobs, link.reconnect
        self._joined = JoinedBatches(link, batch_size)
        self._frames: deque[Frame] = deque()
        self._batches: deque[NextBatch] = deque()

    @property
    def holds(self) -> bool:
        """Whether something was read that is not taken yet."""
        return bool(self._frames or self._batches)

    def take(self, more_come: Callable[[], bool]) -> NextBatch | None:
        """Wait for the next batch. None after Drain, or once the server is gone.

        `more_come`: see `JoinedBatches.extend`.
        """
        while not self._batches:
            while not self._frames:
                if not self._read():
                    return None
            message, body = self._frames.popleft()
            if isinstance(message, Drain):
                return None
            if isinstance(message, Predict):
                self._add(message, body, more_come)
        return self._batches.popleft()

    def _read(self) -> bool:
        try:
            count = self._sock.recv_into(self._reader.space())
        except ConnectionResetError:  # the frontend has crashed, with replies that it had not read
            count = 0
        self._frames += self._reader.received(count) if count else ()
        return count > 0 or self._reconnect()

    def _add(self, message: Predict, body: bytearray, more_come: Callable[[], bool]) -> None:
        requests = self._jobs.take(message, body)
        if message.joins and requests:
            batches = self._joined.extend(requests, self._frames, more_come)
            self._batches.append(NextBatch(requests, batches))
        else:
            size = message.size or len(requests)
            for start in range(0, len(requests), max(size, 1)):
                self._batches.append(NextBatch(requests[start : start + size]))
