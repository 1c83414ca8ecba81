"""Hands the requests of sequences to the groups of a stateful model: each sequence stays with one group."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from msx_core.config import ModelConfig
from msx_core.methods import METHOD
from msx_core.sequences import SequenceKeys
from msx_frontend.errors import ServiceError, ServiceUnavailable
from msx_frontend.job import ALONE, EXPLAIN, PREDICT, STREAM, Job, Sink
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.dispatcher import Dispatcher
from msx_frontend.queueing.job_queue import JobQueue
from msx_frontend.queueing.sequences import Sequence, Sequences


def make_dispatcher(name: str, version: str, config: ModelConfig, keys: SequenceKeys) -> Dispatcher:
    if config.stateful:
        return SequenceDispatcher(name, version, config, keys)
    return Dispatcher(name, version, config)


class SequenceDispatcher(Dispatcher):
    """TorchServe's sequence batching. Jobs without a sequence, such as describe, wait in the plain queue.

    A batch has at most one request of each sequence. A continuous handler may work on several requests of a sequence,
    so that a later one can stop an earlier one; each begins only after the one before it has sent its first chunk.
    """

    def __init__(self, name: str, version: str, config: ModelConfig, keys: SequenceKeys) -> None:
        super().__init__(name, version, config)
        self._keys = keys
        self._sequences = Sequences(config, self._end)
        self._queued: dict[Sequence, None] = {}
        """Sequences with waiting requests, in the order in which their requests are taken."""
        self._at_work: dict[Sequence, None] = {}

    # -- admission --

    def _queue_of(self, job: Job) -> JobQueue:
        if job.kind not in (PREDICT, STREAM, EXPLAIN) and not job.kind.startswith(METHOD):
            return super()._queue_of(job)
        sequence = self._sequence_of(job)
        if sequence.full:
            reason = f"sequence {sequence.id} is full: maxSequenceJobQueueSize is {sequence.capacity}"
            raise self._overloaded(job, reason)
        sequence.closing = _is_true(job, self._keys.end)
        job.sink = _SequenceEndSink(job.sink, self._keys.end, lambda value: self._ended_by_reply(sequence, value))
        self._sequences.mark_active(sequence)
        self._queued[sequence] = None
        return sequence

    def has_sequence_of(self, job: Job) -> bool:
        id = _header(job, self._keys.id)
        return bool(id) and self._sequences.get(id) is not None

    def _sequence_of(self, job: Job) -> Sequence:
        id = _header(job, self._keys.id) or self._name_new(job)
        if (known := self._sequences.get(id)) is not None:
            self._settle(known)
        if (sequence := self._sequences.get(id)) is None:
            sequence = self._open(job, id)
        if sequence.closing:
            raise ServiceUnavailable(self._refusal(job, f"sequence {id} is closed: a request ends it"))
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
        if (why := self._sequences.why_ended(id)) and not _is_true(job, self._keys.start):
            reason = f"sequence {id} has ended: {why}; begin it anew with the header {self._keys.start}: true"
            raise ServiceUnavailable(self._refusal(job, reason))
        if self._sequences.full:
            reason = f"{len(self._sequences)} sequences are open: maxNumSequence is {self._config.max_num_sequence}"
            raise self._overloaded(job, reason)
        return self._sequences.open(id)

    # -- dispatch --

    def pump_soon(self) -> None:
        """At once: a sequence may be so short that its next request would find its queue full."""
        self.pump()

    def pump(self) -> None:
        super().pump()
        self._assign()
        delays = [delay for group in sorted(self.groups, key=_busy) if (delay := self._serve(group)) > 0]
        if delays:
            self._pump_later(min(delays))

    def _assign(self) -> None:
        """Give each new sequence to the group with the fewest sequences, among those that have room."""
        for sequence in [one for one in self._queued if one.group is None]:
            free = [group for group in self.groups if group.room()]
            if not free:
                return
            held = [one.group for one in self._sequences]
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
        return self.policy.wait(time.monotonic(), len(ready), min(heads), idle=1)  # no other group may take them

    def _take(self, sequence: Sequence) -> Job:
        (job,) = sequence.take(1)
        sequence.running.append(job)
        self._at_work[sequence] = None
        del self._queued[sequence]
        if len(sequence):
            self._queued[sequence] = None
        return job

    def group_has_room(self, group: BatchTarget) -> None:
        for sequence in [one for one in self._at_work if one.group is group]:
            self._settle(sequence)
        super().group_has_room(group)

    # -- the end of sequences --

    def group_gone(self, group: BatchTarget) -> None:
        super().group_gone(group)
        for sequence in self._sequences:
            if sequence.group is group:
                self._end(sequence, "the worker that held its state ended")

    def _settle(self, sequence: Sequence) -> None:
        sequence.settle()
        if not sequence.running:
            self._at_work.pop(sequence, None)
        self._sequences.check_idle(sequence)

    def _ended_by_reply(self, sequence: Sequence, value: str) -> None:
        """TorchServe's handlers name the sequences that have ended, separated by semicolons."""
        for id in value.split(";"):
            ended = self._sequences.get(sequence.id if id.strip().lower() == "true" else id.strip())
            if ended is not None:
                self._end(ended, "the handler ended it")

    def _end(self, sequence: Sequence, why: str) -> None:
        """Running requests are still answered; waiting ones are refused."""
        self._sequences.remove(sequence, why)
        self._queued.pop(sequence, None)
        self._at_work.pop(sequence, None)
        if (head := sequence.head) is not None:
            sequence.fail_all(ServiceUnavailable(self._refusal(head, f"sequence {sequence.id} has ended: {why}")))

    # -- all that waits --

    def fail_all(self, error: ServiceError) -> None:
        super().fail_all(error)
        for sequence in list(self._queued):
            sequence.fail_all(error)
            self._sequences.check_idle(sequence)

    @property
    def waiting(self) -> int:
        return super().waiting + sum(map(len, self._queued))

    @property
    def oldest_age(self) -> float:
        return max([self.queue.oldest_age, *(sequence.oldest_age for sequence in self._queued)])

    @property
    def unbound(self) -> int:
        """Without those whose sequence is a group's."""
        return self.queue.requests + sum(len(one) for one in self._queued if one.group is None)

    @property
    def oldest_unbound(self) -> float:
        return max([self.queue.oldest_age, *(one.oldest_age for one in self._queued if one.group is None)])

    def bound(self, group: BatchTarget) -> bool:
        return any(sequence.group is group for sequence in self._sequences)

    def expire(self) -> None:
        super().expire()
        for sequence in list(self._queued):
            sequence.expire(self._config.response_timeout)

    def describe(self) -> dict[str, Any]:
        capacity = self._config.max_num_sequence * self._config.max_sequence_job_queue_size
        return {"remainingCapacity": capacity - self.waiting, "pendingRequests": self.waiting}

    def close(self) -> None:
        super().close()
        self._sequences.close()


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
