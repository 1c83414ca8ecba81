"""Hands the requests of sequences to the groups of a stateful model: each sequence stays with one group."""

import time
import uuid
from collections.abc import Callable, Iterable
from itertools import accumulate

from msx_core.config import ModelConfig
from msx_core.methods import METHOD
from msx_core.replies.sink import Sink
from msx_core.sequences import SequenceKeys
from msx_core.service_errors import Overloaded, ServiceError
from msx_frontend.job import ALONE, EXPLAIN, PREDICT, STREAM, Job
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.batched_jobs import Groups
from msx_frontend.queueing.batching import BatchingPolicy
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.queueing.refusals import Refusals
from msx_frontend.queueing.sequences import Sequence, Sequences
from msx_frontend.workers.handed_group import HandedSequence

ROOM = 1 << 20
"""Characters of the names of sequences that another frontend hears of."""


class SequenceJobs:
    """TorchServe's sequence batching. Jobs without a sequence, such as describe, wait in the plain queue.

    A batch has at most one request of each sequence. A continuous handler may work on several requests of a sequence,
    so that a later one can stop an earlier one; each begins only after the one before it has sent its first chunk.
    """

    def __init__(
        self,
        config: ModelConfig,
        keys: SequenceKeys,
        policy: BatchingPolicy,
        refusals: Refusals,
        overloaded: Callable[[Job, str], Overloaded],
    ) -> None:
        """`overloaded` makes the error for a job that is refused for this reason."""
        self._config, self._keys, self._policy = config, keys, policy
        self._refusals, self._overloaded = refusals, overloaded
        self.open = Sequences(config, self._end)
        self._queued: dict[Sequence, None] = {}
        """Sequences with waiting requests, in the order in which their requests are taken."""
        self._at_work: dict[Sequence, None] = {}

    # -- admission --

    def queue_of(self, job: Job, plain: JobQueue) -> JobQueue:
        """The queue of its sequence, which has a place left; `plain` for a job without one. Raises Overloaded,
        ServiceUnavailable."""
        if not _is_of_sequence(job):
            return plain
        sequence = self._sequence_of(job)
        if sequence.full:
            reason = f"sequence {sequence.id} is full: maxSequenceJobQueueSize is {sequence.capacity}"
            raise self._overloaded(job, reason)
        sequence.closing = _is_true(job, self._keys.end)
        self._watch_end(sequence, job)
        self.open.mark_active(sequence)
        self._queued[sequence] = None
        return sequence

    def _watch_end(self, sequence: Sequence, job: Job) -> None:
        job.sink = _SequenceEndSink(job.sink, self._keys.end, lambda value: self._ended_by_reply(sequence, value))

    def has_one_of(self, job: Job) -> bool:
        """Whether the job goes on with a sequence that is open."""
        id = _header(job, self._keys.id)
        return bool(id) and self.open.get(id) is not None

    def _sequence_of(self, job: Job) -> Sequence:
        id = _header(job, self._keys.id) or self._name_new(job)
        if (known := self.open.get(id)) is not None:
            self._settle(known)
        if (sequence := self.open.get(id)) is None:
            sequence = self._open(job, id)
        if sequence.closing:
            raise self._refusals.unavailable(job, f"sequence {id} is closed: a request ends it")
        return sequence

    def _name_new(self, job: Job) -> str:
        """The client begins a sequence and leaves its name to the server; the handler returns the name."""
        id = f"ts-seq-{uuid.uuid4()}"
        others = [pair for pair in job.headers if pair[0].lower() != self._keys.id.lower()]
        job.headers = [*others, (self._keys.id, id), (self._keys.start, "true")]
        return id

    def _open(self, job: Job, id: str) -> Sequence:
        """As in TorchServe, any new name opens a sequence. One that has ended starts again only with the start header.

        Its state is gone: a request that went on without it would get a wrong answer.
        """
        if (why := self.open.why_ended(id)) and not _is_true(job, self._keys.start):
            reason = f"sequence {id} has ended: {why}; begin it anew with the header {self._keys.start}: true"
            raise self._refusals.unavailable(job, reason)
        if self.open.full:
            reason = f"{len(self.open)} sequences are open: maxNumSequence is {self._config.max_num_sequence}"
            raise self._overloaded(job, reason)
        return self.open.open(id)

    # -- another frontend --

    def hand_over(self, group: BatchTarget) -> list[HandedSequence]:
        """Let it have the sequences whose state the group has, and know those that have ended. Clients choose names:
        the longest are forgotten where there is no room for all."""
        ordered = sorted((one for one in self.open if one.group is group), key=lambda one: len(one.id))
        every = [*map(self.open.hand_over, ordered), *self.open.recently_ended()]
        room = accumulate(len(one.id) for one in every)
        return [one for one, size in zip(every, room, strict=True) if size <= ROOM]

    def take_over(self, group: BatchTarget, handed: Iterable[tuple[HandedSequence, list[Job]]]) -> None:
        """Go on with those of the frontend before this one, of which these jobs run."""
        for one, running in handed:
            if one.ended:
                self.open.remember(one)
                continue
            sequence = self.open.take_over(one, group, running)
            self._at_work[sequence] = None
            for job in running:
                self._watch_end(sequence, job)
            self._settle(sequence)

    def guests_arrived(self, group: BatchTarget, jobs: Iterable[Job]) -> None:
        """Requests to the frontend before this one, on connections that it still has: what they begin and end, they
        begin and end here. It has checked the limits."""
        for job in jobs:
            if not (id := _header(job, self._keys.id)) or not _is_of_sequence(job):
                continue
            if (sequence := self.open.get(id)) is None:
                sequence = self.open.open(id)
            sequence.group, sequence.closing = group, sequence.closing or _is_true(job, self._keys.end)
            sequence.running.append(job)
            self.open.mark_active(sequence)
            self._watch_end(sequence, job)
            self._at_work[sequence] = None

    # -- dispatch --

    def hand_out(self, groups: Groups) -> float:
        """Hand batches to the groups while they have room; returns the seconds after which to call again, else 0."""
        self._assign(groups)
        delays = [delay for group in sorted(groups, key=_busy) if (delay := self._serve(group)) > 0]
        return min(delays, default=0.0)

    def _assign(self, groups: Groups) -> None:
        """Give each new sequence to the group with the fewest sequences, among those that have room."""
        for sequence in [one for one in self._queued if one.group is None]:
            free = [group for group in groups if group.room()]
            if not free:
                return
            held = [one.group for one in self.open]
            sequence.group = min(free, key=lambda group: (held.count(group), group.busy))

    def _serve(self, group: BatchTarget) -> float:
        """Hand batches to the group while it has room; returns the seconds to wait for more requests."""
        while (room := group.room()) and (ready := self._ready(group)):
            if _kind(ready[0]) in ALONE:
                ready = ready[:1]
            elif not group.is_async and (delay := self._wait_for_more(ready)) > 0:
                return delay
            group.predict([self._take(sequence) for sequence in ready[:room]])
            group.flush()
        return 0.0

    def _ready(self, group: BatchTarget) -> list[Sequence]:
        """The sequences whose next requests could form the next batch of this group."""
        for sequence in [one for one in self._queued if not len(one)]:
            del self._queued[sequence]
        mine = [
            one
            for one in self._queued
            if one.group is group and all(_can_be_followed(group, job) for job in one.running)
        ]
        return [one for one in mine if _kind(one) == _kind(mine[0])]

    def _wait_for_more(self, ready: list[Sequence]) -> float:
        heads = [sequence.head.enqueued for sequence in ready if sequence.head is not None]
        return self._policy.wait(time.monotonic(), len(ready), min(heads), idle=1)  # no other group may take them

    def _take(self, sequence: Sequence) -> Job:
        (job,) = sequence.take(1)
        sequence.running.append(job)
        self._at_work[sequence] = None
        del self._queued[sequence]
        if len(sequence):
            self._queued[sequence] = None
        return job

    def settle(self, group: BatchTarget) -> None:
        """The group may have answered requests."""
        for sequence in [one for one in self._at_work if one.group is group]:
            self._settle(sequence)

    # -- the end of sequences --

    def group_gone(self, group: BatchTarget) -> None:
        for sequence in self.open:
            if sequence.group is group:
                self._end(sequence, "the worker that held its state ended")

    def _settle(self, sequence: Sequence) -> None:
        sequence.settle()
        if not sequence.running:
            self._at_work.pop(sequence, None)
        self.open.check_idle(sequence)

    def _ended_by_reply(self, sequence: Sequence, value: str) -> None:
        """TorchServe's handlers name the sequences that have ended, separated by semicolons."""
        for id in value.split(";"):
            ended = self.open.get(sequence.id if id.strip().lower() == "true" else id.strip())
            if ended is not None:
                self._end(ended, "the handler ended it")

    def _end(self, sequence: Sequence, why: str) -> None:
        """Running requests are still answered; waiting ones are refused."""
        self.open.remove(sequence, why)
        self._queued.pop(sequence, None)
        self._at_work.pop(sequence, None)
        if (head := sequence.head) is not None:
            sequence.fail_all(self._refusals.unavailable(head, f"sequence {sequence.id} has ended: {why}"))

    # -- all that waits --

    def fail_all(self, error: ServiceError) -> None:
        for sequence in list(self._queued):
            sequence.fail_all(error)
            self.open.check_idle(sequence)

    def expire(self, longest_wait: float) -> None:
        for sequence in list(self._queued):
            sequence.expire(longest_wait)

    @property
    def capacity(self) -> int:
        """Requests."""
        return self._config.max_num_sequence * self._config.max_sequence_job_queue_size

    @property
    def waiting(self) -> int:
        """Requests."""
        return sum(map(len, self._queued))

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest of them has waited; 0 without any."""
        return max((sequence.oldest_age for sequence in self._queued), default=0.0)

    @property
    def unbound(self) -> int:
        """Requests whose sequence is no group's yet."""
        return sum(len(one) for one in self._queued if one.group is None)

    @property
    def oldest_unbound(self) -> float:
        """Seconds that the oldest of them has waited; 0 without any."""
        return max((one.oldest_age for one in self._queued if one.group is None), default=0.0)

    def bound(self, group: BatchTarget) -> bool:
        """The group has the state of a sequence."""
        return any(sequence.group is group for sequence in self.open)

    def close(self) -> None:
        self.open.close()


class _SequenceEndSink:
    """A job's sink that finds out whether the headers of the reply end a sequence."""

    def __init__(self, sink: Sink, key: str, ended: Callable[[str], None]) -> None:
        self.chunk = sink.chunk
        self.end = sink.end
        self.fail = sink.fail
        self._sink = sink
        self._key = key.lower()
        self._ended = ended

    def start(self, status: int, phrase: str, headers: list[tuple[str, str]]) -> None:
        self._sink.start(status, phrase, headers)
        self._look(headers)

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self._sink.answer(status, phrase, headers, data)
        self._look(headers)

    def _look(self, headers: list[tuple[str, str]]) -> None:
        for name, value in headers:
            if name.lower() == self._key:
                self._ended(value)


def _is_of_sequence(job: Job) -> bool:
    return job.kind in (PREDICT, STREAM, EXPLAIN) or job.kind.startswith(METHOD)


def _header(job: Job, key: str) -> str:
    return next((value for name, value in job.headers if name.lower() == key.lower()), "")


def _is_true(job: Job, key: str) -> bool:
    return _header(job, key).lower() not in ("", "false")


def _kind(sequence: Sequence) -> str:
    return sequence.head.kind if sequence.head is not None else ""


def _can_be_followed(group: BatchTarget, job: Job) -> bool:
    """Whether the next request of the same sequence may begin beside this one."""
    return group.continuous and job.first_chunk > 0


def _busy(group: BatchTarget) -> int:
    return group.busy
