"""Runs batches of jobs on the leader of a worker group: requests go out, replies reach the sinks of their jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from msx_core.replies.stream_credit import StreamCredit
from msx_core.service_errors import HandlerFailed, ServiceError
from msx_frontend.job import Job, answer_all
from msx_frontend.shared_value import StageJob
from msx_frontend.workers.guest_job import GuestJob
from msx_frontend.workers.in_flight import Finished, InFlight
from msx_frontend.workers.launcher import GroupSpec
from msx_frontend.workers.predict_frames import PredictFrames
from msx_frontend.workers.rank import Rank
from msx_frontend.workers.segments.port import SegmentPort
from msx_frontend.workers.stage_sharing import StageSharing
from msx_protocol import (
    Cancel,
    Chunk,
    Chunks,
    CompleteReplies,
    Credit,
    Dropped,
    Failed,
    Joined,
    Lent,
    Loaded,
    Returned,
    encode_frame,
)


class BatchEvents(Protocol):
    """Events of a group's batches, for its owner, on the loop's thread."""

    def group_has_room(self, group: BatchRunner) -> None: ...

    def batches_finished(self, batches: list[Finished]) -> None: ...

    def jobs_returned(self, jobs: list[Job]) -> None:
        """Jobs whose batch had not begun when the group ended."""

    def guests_arrived(self, group: BatchRunner, jobs: Sequence[Job]) -> None:
        """Requests that a frontend before this one has sent to the group."""


class BatchRunner:
    """Runner of a group's batches (the dispatcher's `BatchTarget`). A batch handler runs one batch after the other; one
    that overlaps has up to three begun, whose steps run at once.

    An async or continuous handler takes requests one by one, each a batch of its own, up to `slots` at a time.
    """

    def __init__(self, spec: GroupSpec, leader: Rank, events: BatchEvents, replied: Callable[[], None]) -> None:
        """`replied` is called once, with the first good reply."""
        self._spec = spec
        self._alone = len(spec.ranks) == 1
        self._batch_size = spec.load.batch_size
        self._write_control = leader.control.write
        self._events = events
        self._replied: Callable[[], None] | None = replied
        self.in_flight = InFlight()
        self.ready = False
        """It takes jobs."""
        self.is_async = False
        """It takes requests one by one, at any time: an async handler, or a continuous one."""
        self.continuous = False
        """The handler is called again and again, each time with the requests that are there (`continuousBatching`)."""
        self.overlaps = False
        """It preprocesses a batch while inference of the one before it runs."""
        self._slots = 0
        self.progressed = time.monotonic()
        """When the leader got its first job after a pause, or a rank sent its last message."""
        self._outgoing = PredictFrames(leader.data.write)
        self.flush: Callable[[], None] = self._outgoing.flush
        """Writes what `predict` has taken."""
        self.port: SegmentPort | None = None
        self.sharing: StageSharing | None = None
        """End of `port` where another frontend follows; None where there is none."""

    def configure(self, message: Loaded) -> None:
        """The handler has told how it takes requests."""
        self.continuous = message.continuous
        self.is_async = self.in_flight.at_once = message.is_async or message.continuous
        self.overlaps = message.overlap
        self.in_flight.go_on_after(message.newest)
        self._slots = self._spec.max_concurrent if message.is_async else self._spec.slots

    # -- what the dispatcher asks --

    @property
    def busy(self) -> int:
        """Jobs in flight."""
        return len(self.in_flight.open)

    @property
    def awaited(self) -> bool:
        """A client waits for one of its jobs."""
        return self.in_flight.awaited

    @property
    def waiting_streams(self) -> int:
        """Streams that send on only after their clients have taken something."""
        return sum(map(_waits, self.in_flight.begun))

    @property
    def held_up(self) -> bool:
        """All that its handler works on waits for clients, or for the end of such a batch."""
        foremost = self.in_flight.foremost
        return bool(foremost) and all(map(_waits, foremost))

    @property
    def idle(self) -> bool:
        return self.ready and not self.in_flight.open

    @property
    def places(self) -> int:
        """Jobs that it takes at once when it has none; 0 before it is ready."""
        if not self.ready:
            return 0
        return self._slots if self.is_async else self._batch_size

    def room(self, *, ahead: int = 0) -> int:
        """Jobs that it takes now; up to `ahead` batches may wait behind the running one."""
        if not self.ready:
            return 0
        if self.is_async:
            return self._slots - len(self.in_flight.open)
        return self._batch_size * max(1 + ahead - len(self.in_flight.batches), 0)

    @property
    def room_to_join(self) -> int:
        """Jobs that it takes for the batch that its worker begins next, while others run."""
        if not self.ready or self.is_async or not self._alone:
            return 0
        return max(self._batch_size - self.in_flight.behind, 0)

    def typical_seconds(self, kind: str) -> float:
        """Seconds of the device for a batch of this method on average; infinity before the first one has finished."""
        return self.in_flight.typical_seconds(kind)

    def holds(self, job: Job) -> bool:
        """The worker has the job and has not sent the last of its reply."""
        return job.group is self and job.number in self.in_flight.open

    def batch_of(self, job: Job) -> tuple[float, int]:
        """When it began, and how many requests it has; 0 where that is not known."""
        held = self.in_flight.open.get(job.number)
        return (held[1].began, held[1].size) if held is not None and held[0] is job else (0.0, 0)

    # -- requests --

    def predict(self, jobs: list[Job], *, joins: bool = False) -> None:
        """Send a batch, or several full ones. They leave with `flush`.

        `joins`: the worker may run it together with later batches that are sent before it begins.
        """
        now = time.monotonic()
        if not self.in_flight.open:
            self.progressed = now
        for job in jobs:
            job.group = self
        size = 1 if self.is_async else min(self._batch_size, len(jobs))
        self.in_flight.add(jobs, size, now, joins=joins)
        if rest := len(jobs) % size:
            self._outgoing.add(jobs[:-rest], size, now)
            self._outgoing.add(jobs[-rest:], rest, now)
        else:
            self._outgoing.add(jobs, size, now, joins=joins)

    def take_over(self, jobs: Sequence[Job], size: int, began: float | None, *, joins: bool) -> None:
        """A batch of a frontend before this one, whose jobs have their numbers. `began`: None for one that is sent now,
        0 for one that the worker has not begun."""
        now = time.monotonic()
        if began is None:
            began = now if self.is_async or not self.in_flight.batches else 0.0
        for job in jobs:
            job.group, job.started = self, began or now
        self.in_flight.enter(jobs, size, began, joins=joins)
        self._events.guests_arrived(self, jobs)

    def cancel(self, job: Job) -> None:
        if job.number in self.in_flight.open:
            self._write_control(encode_frame(Cancel([job.number])))

    def cancel_all(self, error: ServiceError) -> None:
        """Every job fails with `error` at once, and the worker is told."""
        for job in self.in_flight.jobs():
            job.cancel(error)

    # -- replies --

    def answered(self, message: CompleteReplies, body: bytes) -> None:
        """Complete replies of several jobs with the same status and headers."""
        replies, numbers, end, held = [], [], 0, self.in_flight.open
        for number, size in zip(message.numbers, message.sizes, strict=True):
            start, end = end, end + size
            if number in held:
                numbers.append(number)
                replies.append((held[number][0], body[start:end]))
        answer_all(replies, message.status, message.phrase, message.headers, self.progressed)
        if self._replied is not None:
            self._first_reply()
        self._finish(numbers)

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
            self._first_reply()
            self._finish([message.number])
        elif message.status and self.continuous:
            self._events.group_has_room(self)  # the next request of its sequence may join it

    def chunks(self, message: Chunks, body: bytes) -> None:
        """Pieces of replies that go on."""
        end, held = 0, self.in_flight.open
        for number, size in zip(message.numbers, message.sizes, strict=True):
            start, end = end, end + size
            if size and number in held and not (job := held[number][0]).done:
                job.sink.chunk(body[start:end])
                if (credit := job.credit) is not None and not credit.held:
                    credit.took(size)

    def _pass_on(self, job: Job, message: Chunk, body: bytes) -> None:
        if message.status:
            job.status, job.first_chunk = message.status, self.progressed
            job.credit = StreamCredit(self._spec.stream_buffers, partial(self._grant, message.number))
            job.sink.start(message.status, message.phrase, message.headers)
        credit = job.credit
        if message.last and credit is not None:
            credit.end()
        if body:
            job.sink.chunk(body)
            if credit is not None and not credit.held:
                credit.took(len(body))
        if message.last:
            job.finish(job.status)

    def _grant(self, number: int, limit: int) -> None:
        self._write_control(encode_frame(Credit(number, limit)))

    def share(self, port: SegmentPort) -> None:
        """The worker reads and writes large values in shared memory."""
        self.port = self._outgoing.port = port
        self.sharing = StageSharing(port, self.in_flight, self._outgoing)

    def lent(self, message: Lent) -> None:
        """The reply of this job that comes next refers to shared memory."""
        job = self.in_flight.job(message.number)
        shared = job.shared if type(job) is StageJob else ()
        if self.port is None:
            return
        try:
            value = self.port.value(message.segments, {one.key: one for value in shared for one in value.segments})
        except ServiceError as error:
            if job is not None:
                job.fail(error)
            return
        if type(job) is StageJob:
            job.lend(value)
        else:
            value.close()

    def returned(self, message: Returned) -> None:
        if self.port is not None:
            self.port.returned(message.segments)

    def joined(self, message: Joined) -> None:
        self.in_flight.join(message.first, message.batches, self.progressed)
        self._events.group_has_room(self)

    def failed(self, message: Failed | Dropped) -> None:
        """The job ends without a reply of its handler."""
        job = self.in_flight.job(message.number)
        if job is None:
            return
        if isinstance(message, Failed):
            job.fail(HandlerFailed(message.status, message.message, message.code))
        elif isinstance(job, GuestJob):
            job.drop()
        self._finish([message.number])

    def close(self, error: ServiceError) -> None:
        """The group has ended: running jobs fail, jobs that waited behind them go back to the queue."""
        begun, waiting = self.in_flight.release()
        for job in (*begun, *(one for one in waiting if isinstance(one, GuestJob))):
            job.fail(error)
        returned = [job for job in waiting if not job.done]
        for job in returned:
            job.group = None
        if returned:
            self._events.jobs_returned(returned)

    def _first_reply(self) -> None:
        replied, self._replied = self._replied, None
        if replied is not None:
            replied()

    def _finish(self, numbers: list[int]) -> None:
        over = self.in_flight.finish(numbers, self.progressed)
        if over:
            self._events.batches_finished(over)
        if over or self.is_async:
            self._events.group_has_room(self)


def _waits(job: Job) -> bool:
    return job.credit is not None and job.credit.spent
