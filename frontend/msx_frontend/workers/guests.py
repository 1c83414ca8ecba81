"""Requests that a frontend before this one has sent to a worker group, which is this one's now."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable

from msx_frontend.job import PREDICT
from msx_frontend.workers.batch_runner import BatchRunner
from msx_frontend.workers.guest_job import GuestJob, GuestSink, Headers
from msx_frontend.workers.handed_group import HandedBatch
from msx_frontend.workers.rank import Rank
from msx_protocol import Cancel, Credit, Predict, ToWorker, ToWorkerControl, decode_headers, encode_frame_parts
from msx_protocol.channel import Channel


class Guests:
    """Is a worker to the other frontend: it reads what that one sends, and hands it on."""

    def __init__(self, runner: BatchRunner, leader: Rank) -> None:
        self._runner, self._leader = runner, leader
        self._data: Channel[ToWorker] = Channel(ToWorker, self._received, self._left)
        self._control: Channel[ToWorkerControl] = Channel(ToWorkerControl, self._told, lambda error: None)
        self._data.hold()

    def restore(self, batches: Iterable[HandedBatch]) -> None:
        """Batches that the worker has, before the connections to it are read."""
        now = time.monotonic()
        for batch in batches:
            jobs = [self._begun(number, batch.kind, status) for number, status in batch.jobs]
            began = 0.0 if batch.age is None else now - batch.age
            self._runner.take_over(jobs, batch.size, began, joins=batch.joins)

    async def connect(self, data: socket.socket, control: socket.socket) -> None:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self._data, sock=data)
        await loop.create_unix_connection(lambda: self._control, sock=control)

    def close(self) -> None:
        self._data.close()
        self._control.close()

    def _job(self, number: int, kind: str, headers: Headers = ()) -> GuestJob:
        return GuestJob(number, kind, GuestSink(number, self._data.write), headers)

    def _begun(self, number: int, kind: str, status: int) -> GuestJob:
        job = self._job(number, kind)
        job.status = status
        return job

    def _received(self, message: ToWorker, body: bytes) -> None:
        if not isinstance(message, Predict):
            return
        jobs = [
            self._job(one.number, one.operation or PREDICT, decode_headers(one.headers)) for one in message.requests
        ]
        size = message.size or len(jobs)
        for at in range(0, len(jobs), size):
            self._runner.take_over(jobs[at : at + size], size, None, joins=message.joins)
        self._runner.flush()  # in the order in which they are counted
        self._leader.data.write(*encode_frame_parts(message, [body]))

    def _told(self, message: ToWorkerControl, body: bytes) -> None:
        if isinstance(message, Cancel | Credit):
            self._leader.control.write(*encode_frame_parts(message, []))

    def _left(self, error: Exception | None) -> None:
        """The other frontend has ended: nobody waits for what is still running."""
        for job in self._runner.in_flight.jobs():
            if isinstance(job, GuestJob):
                job.cancel()
        self._control.close()
