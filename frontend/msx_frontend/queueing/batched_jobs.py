"""Hands the jobs of a queue to groups in batches: which group takes the next ones, how many, and when."""

import time
from collections.abc import Sequence
from math import inf as INFINITY

from msx_core.config import ModelConfig
from msx_frontend.job import ALONE, OWN, PREDICT, Job
from msx_frontend.queueing.ahead import batches_ahead, may_join
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.batching import BatchingPolicy
from msx_frontend.queueing.events import Gate
from msx_frontend.queueing.job_queue import JobQueue, Place

Groups = Sequence[BatchTarget]


class BatchedJobs:
    """Batches of a queue's jobs. `policy` tells how long a batch that is not full waits for more; `gate`: see
    `QueueEvents`."""

    def __init__(self, config: ModelConfig, policy: BatchingPolicy, gate: Gate | None) -> None:
        self._size, self._tickets, self._policy = config.batch_size, config.use_job_ticket, policy
        self._gate = gate
        self.autoscaled = False
        """Another group may be started, but only for requests that wait in the queue, and it takes no others."""

    def hand_out(self, queue: JobQueue, groups: Groups) -> float:
        """Until the queue is empty, no group has room, the gate lets nothing pass, or waiting for more pays: then the
        seconds after which to call again, else 0."""
        delay, several = 0.0, self._size > 1
        while ring := queue.ring:
            joins = several and self._joins(ring[0], groups)
            group, room = self._free_group(queue, groups, joins)
            if group is None:
                break
            waits = several and not group.is_async and not (joins and group.busy)
            if waits and (delay := self._delay(queue, ring[0], groups)) > 0:
                break
            if queue.instances:
                room = _share(room, queue, groups)
            jobs = queue.take(room)
            if self._gate is not None and not (jobs := let_pass(self._gate, queue, jobs)):
                break
            group.predict(jobs, joins=joins)
        for group in groups:
            group.flush()
        return delay

    def _delay(self, queue: JobQueue, head: Place, groups: Groups) -> float:
        if head.kind in ALONE or len(queue) >= self._size:
            return 0.0
        return self._policy.wait(time.monotonic(), len(queue), head.enqueued, _idle(groups))

    def _joins(self, head: Place, groups: Groups) -> bool:
        """Whether the job may be sent to a busy worker, which takes it into its next batch."""
        if self._tickets or len(groups) != 1 or head.kind != PREDICT:
            return False
        return may_join(self._policy.typical_seconds)

    def _free_group(self, queue: JobQueue, groups: Groups, joins: bool) -> tuple[BatchTarget | None, int]:
        """The least busy group with room, else one that may have full batches waiting; and how many jobs it takes.

        The only group takes several batches at once.
        """
        best = groups[0] if len(groups) == 1 else min(groups, key=_busy, default=None)
        if best is None or (room := best.room()):
            return best, 0 if best is None else room
        if joins and (room := best.room_to_join):
            return best, room
        if len(queue) < self._size or not (ahead := self._ahead(queue, best, len(groups))):
            return None, 0
        most = len(queue) // self._size * self._size if len(groups) == 1 else self._size
        room = min(best.room(ahead=ahead), most)
        return (best, room) if room else (None, 0)

    def _ahead(self, queue: JobQueue, group: BatchTarget, groups: int) -> int:
        """How many batches of the head's kind may wait behind the running one of the group. One method may take much
        longer than another; it does not overlap."""
        seconds, kind = self._policy.typical_seconds, queue.ring[0].kind
        overlaps = group.overlaps and kind in OWN
        if self._tickets or (seconds == INFINITY and not overlaps):
            return 0
        taken = seconds if kind in OWN else group.typical_seconds(kind)
        plenty = len(queue) >= self._size * (groups + self.autoscaled)
        return batches_ahead(taken, only=groups == 1, overlaps=overlaps, plenty=plenty)


def let_pass(gate: Gate, queue: JobQueue, jobs: list[Job]) -> list[Job]:
    """Return the jobs that the gate lets pass; the others are at the head of the queue again."""
    count = gate(jobs)
    if count < len(jobs):
        queue.put_back(jobs[count:])
    return jobs[:count]


def _share(room: int, queue: JobQueue, groups: Groups) -> int:
    """How many a group takes where instances wait: groups that are idle divide them, or one would work on all of a
    request while the others look on."""
    idle = _idle(groups)
    return min(room, -(-len(queue) // idle)) if idle > 1 else room


def _idle(groups: Groups) -> int:
    return sum(group.idle for group in groups)


def _busy(group: BatchTarget) -> int:
    return group.busy
