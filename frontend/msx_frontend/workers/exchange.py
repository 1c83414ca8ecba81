"""Between the jobs of a worker group and its rank 0: requests go out, and what comes back reaches their sinks."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from msx_frontend.errors import HandlerFailed, ServiceError
from msx_frontend.job import Job, answer_all
from msx_frontend.workers.crew import Crew
from msx_frontend.workers.in_flight import InFlight
from msx_protocol import Answers, Cancel, Chunk, Dropped, Failed, Joined, Loaded, encode_frame

if TYPE_CHECKING:
    from msx_frontend.workers.group import GroupEvents, WorkerGroup


class Exchange:
    """`slots` are the requests at once of a handler that takes them one by one; None where it works on batches."""

    def __init__(self, group: WorkerGroup, crew: Crew, events: GroupEvents) -> None:
        self._group, self._crew, self._events = group, crew, events
        self.in_flight = InFlight()
        self.slots: int | None = None
        self.continuous = False
        self.progressed = time.monotonic()
        """When rank 0 had something to do for the first time, or some rank said something for the last."""
        self._replied = False
        self._loop = asyncio.get_running_loop()
        self._outgoing: list[bytes | bytearray] = []
        self._batch_size = group.spec.load.batch_size

    def agreed(self, message: Loaded) -> None:
        """The handler says how it takes requests."""
        self.continuous = message.continuous
        if message.is_async:
            self.slots = self._group.spec.max_concurrent
        elif message.continuous:
            self.slots = self._group.spec.slots

    def room(self, ahead: int) -> int:
        if self.slots is not None:
            return self.slots - len(self.in_flight)
        return self._batch_size if self.in_flight.batches <= ahead else 0

    @property
    def room_to_join(self) -> int:
        """Jobs that may still be sent for the next batch, while one runs."""
        alone = len(self._crew.members) == 1 and self.slots is None
        return max(self._batch_size - self.in_flight.behind, 0) if alone else 0

    def predict(self, jobs: list[Job], *, joins: bool) -> None:
        """Send a batch; where requests go one by one, each job is one."""
        now = time.monotonic()
        if not self.in_flight:
            self.progressed = now
        for job in jobs:
            job.group = self._group
        if self.slots is None:
            self._send(self.in_flight.add(jobs, now, at_once=False, joins=joins))
        else:
            for job in jobs:
                self._send(self.in_flight.add([job], now, at_once=True))

    def _send(self, frame: list[bytes | bytearray]) -> None:
        """All frames of one turn of the loop leave in one write."""
        if not self._outgoing:
            self._loop.call_soon(self.flush)
        self._outgoing += frame

    def flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing:
            self._crew.send(*outgoing)

    def cancel(self, job: Job) -> None:
        if job.number in self.in_flight:
            self._crew.send_control(encode_frame(Cancel([job.number])))

    def cancel_all(self, error: ServiceError) -> None:
        for job in self.in_flight.jobs():
            job.cancel(error)

    def answered(self, message: Answers, body: bytes) -> None:
        """Whole replies of many jobs; what is to be done once for all of them is done once."""
        jobs, end, job_of = [], 0, self.in_flight.job
        for number, size in zip(message.numbers, message.sizes, strict=True):
            start, end = end, end + size
            if (job := job_of(number)) is not None:
                jobs.append((job, body[start:end]))
        answer_all(jobs, message.status, message.phrase, message.headers, self.progressed)
        self._good_reply()
        self._finish([job.number for job, _ in jobs])

    def chunk(self, message: Chunk, body: bytes) -> None:
        job = self.in_flight.job(message.number)
        if job is None:
            return
        if message.last and message.status:
            job.first_chunk = self.progressed
            job.answer(message.status, message.phrase, message.headers, body)
        elif not job.done:
            self._pass_on(job, message, body)
        if message.last:
            self._good_reply()
            self._finish([message.number])
        elif message.status and self.continuous:
            self._events.group_has_room(self._group)  # the next request of its sequence may join it

    def _pass_on(self, job: Job, message: Chunk, body: bytes) -> None:
        if message.status:
            job.status, job.first_chunk = message.status, self.progressed
            job.sink.start(message.status, message.phrase, message.headers)
        if body:
            job.sink.chunk(body)
        if message.last:
            job.finish(job.status)

    def joined(self, message: Joined) -> None:
        self.in_flight.join(message.batches, self.progressed)
        self._events.group_has_room(self._group)

    def over(self, message: Failed | Dropped) -> None:
        """Without an answer."""
        job = self.in_flight.job(message.number)
        if job is None:
            return
        if isinstance(message, Failed):
            job.fail(HandlerFailed(message.status, message.message, message.code))
        self._finish([message.number])

    def let_go(self, error: ServiceError) -> None:
        """The group has ended: what was running fails; what waited behind it goes back to the queue."""
        begun, waiting = self.in_flight.let_go()
        for job in begun:
            job.fail(error)
        returned = [job for job in waiting if not job.done]
        for job in returned:
            job.group = None
        if returned:
            self._events.jobs_returned(returned)

    def _good_reply(self) -> None:
        if not self._replied:
            self._replied = True
            self._events.group_replied(self._group)

    def _finish(self, numbers: list[int]) -> None:
        over = self.in_flight.finish(numbers, self.progressed)
        for size, seconds in over:
            self._events.batch_finished(size, seconds)
        if over or self.slots is not None:
            self._events.group_has_room(self._group)
