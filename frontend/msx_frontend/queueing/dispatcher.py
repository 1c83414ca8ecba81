"""The queue of a model version: which requests are taken, and when batches of them are handed to its groups."""

import asyncio
import time
from typing import Any

from msx_core.config import ModelConfig
from msx_core.sequences import SequenceKeys
from msx_core.service_errors import Overloaded, ServiceError, ServiceUnavailable
from msx_frontend.job import PREDICT, STREAM, Job
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.batched_jobs import BatchedJobs
from msx_frontend.queueing.batching import BatchingPolicy, make_policy
from msx_frontend.queueing.events import QueueEvents
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.queueing.job_queue import JobQueue, Waiting
from msx_frontend.queueing.priority_queue import PriorityQueue
from msx_frontend.queueing.queue_watch import QueueWatch
from msx_frontend.queueing.refusals import Refusals, too_large
from msx_frontend.queueing.routing.routed import RoutedJobs
from msx_frontend.queueing.sequence_jobs import SequenceJobs
from msx_frontend.queueing.tickets import free_tickets

KEYS = SequenceKeys()
UNHEARD = QueueEvents()


class Dispatcher:
    """Owns the queue of a model version. `groups` are the worker groups that are ready."""

    def __init__(
        self,
        name: str,
        version: str,
        config: ModelConfig,
        keys: SequenceKeys = KEYS,
        events: QueueEvents = UNHEARD,
    ) -> None:
        self._name, self._config, self.events = name, config, events
        self._loop = asyncio.get_running_loop()
        self._streams_share = config.stream_batching or config.continuous_batching
        self.queue = JobQueue(config.job_queue_size)
        self.policy: BatchingPolicy = make_policy(
            config.batching_policy, config.batch_size, config.max_batch_delay / 1000
        )
        self.batched = BatchedJobs(config, self.policy, events.gate)
        self._refusals = Refusals(name, version)
        self._stateful = config.stateful
        self.sequences = SequenceJobs(config, keys, self.policy, self._refusals, self._overloaded)
        """Jobs that wait outside the queue: the sequences' requests of a stateful model, none of others."""
        self.answered: float = 0
        """Requests that workers have answered since the start; one of n instances counts 1/n with each."""
        self._with_instances: dict[InstanceRequest, None] = {}
        """Requests with instances that are not answered."""
        self._watch = QueueWatch(self)
        self.groups: list[BatchTarget] = []
        self.expecting_workers = False
        self.refusal = ""
        """Why requests are refused while all workers have failed; "" while they may wait for workers."""
        self.routed: RoutedJobs | None = None
        """Chooses workers for texts; None for other models."""
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None

    # -- which requests are taken --

    def submit(self, job: Job) -> None:
        """Queue the job. Raises at once the ServiceError that the client gets, if it cannot be taken."""
        if not self.groups:
            self._check_may_serve(job)
        if self._config.use_job_ticket:
            self._check_ticket(job)
        if job.kind == STREAM and self._streams_share:
            job.kind = PREDICT
        queue = self.queue if not self._stateful else self.sequences.queue_of(job, self.queue)
        if job.priority and queue is self.queue:
            self._check_place(job)
            queue = self._with_priorities(job)
        if not queue.put(job, bounded=True):
            self._check_place(job)
            queue.put(job)
        self._wait(job)

    def pass_on(self, job: Job) -> None:
        """Queue a job for which the stage before has kept a place: neither a full queue nor tickets refuse it.

        Raises ServiceUnavailable.
        """
        if not self.groups:
            self._check_may_serve(job)
        (self._with_priorities(job) if job.priority else self.queue).put(job)
        self._wait(job)

    def submit_instances(self, request: InstanceRequest) -> None:
        """Queue all instances of the request. Raises at once the ServiceError that the client gets, if they cannot be
        taken; then none is."""
        if not self.groups:
            self._check_may_serve(request)
        if self._config.use_job_ticket:
            self._check_ticket(request)
        self._check_instances(request)
        self._check_place(request)
        request.place = self
        self._with_instances[request] = None
        (self._with_priorities(request) if request.priority else self.queue).put_request(request)
        self._wait(request)

    def _wait(self, request: Waiting) -> None:
        """The request is in a queue."""
        if request.deadline is not None:
            left = max(request.deadline - time.monotonic(), 0)
            request.timer = self._loop.call_later(left, self._refusals.expire, request)
        if self._config.batch_size > 1:
            self.policy.arrived(request.enqueued)
        self.pump_soon()

    def _with_priorities(self, asked: Waiting) -> JobQueue:
        """Give the queue classes from the first request on that asks for one."""
        if not isinstance(self.queue, PriorityQueue):
            self.queue = PriorityQueue(self.queue)
        self.events.prioritised(asked.priority)
        return self.queue

    @property
    def may_serve(self) -> bool:
        """A group is ready, or will probably be soon."""
        return bool(self.groups) or (self.expecting_workers and not self.refusal)

    def _check_may_serve(self, request: Waiting) -> None:
        """Raises ServiceUnavailable."""
        if not self.may_serve:
            raise ServiceUnavailable(self.refusal) if self.refusal else self._refusals.unavailable(request, "")
        self.events.asked()

    def _check_ticket(self, request: Waiting) -> None:
        """Raises Overloaded. The request that starts the first worker has the ticket that it will have."""
        if not self.groups and not self.waiting and self.events.asked():
            return
        if free_tickets(self.groups, self.waiting, self._with_instances) <= 0:
            raise self._overloaded(request, "no job ticket is free: every worker is busy and useJobTicket is on")

    def _check_place(self, request: Waiting) -> None:
        """Raises Overloaded."""
        if self.queue.full:
            self.pump()  # jobs that arrived in this turn of the loop may go to a worker that is free
            if self.queue.full:
                raise self._overloaded(request, f"the queue is full: jobQueueSize is {self.queue.capacity}")

    def _check_instances(self, request: InstanceRequest) -> None:
        """Raises PayloadTooLarge, Overloaded."""
        limit, size = self._config.max_enqueued_instances, request.size
        if size > limit:
            raise too_large(self._name, size, limit)
        if self.queue.instances + size > limit:
            self.pump()  # a worker that is free may take some
        if (waiting := self.queue.instances) + size > limit:
            reason = (
                f"{waiting} instances wait, and the {size} of this request do not fit: maxEnqueuedInstances is {limit}"
            )
            raise self._overloaded(request, reason)

    def _overloaded(self, request: Waiting, reason: str) -> Overloaded:
        """Make an error with the time after which the jobs that wait now will have been answered."""
        at_once = self._config.batch_size * max(len(self.groups), 1)
        return self._refusals.overloaded(request, reason, self._watch.seconds(at_once))

    def has_sequence_of(self, job: Job) -> bool:
        """Whether the job goes on with a sequence that is open here."""
        return self.sequences.has_one_of(job)

    def instance_answered(self, request: InstanceRequest) -> None:
        self.answered -= 1 - 1 / request.size

    def leave(self, request: InstanceRequest) -> None:
        """None of its instances waits any more: it was cancelled, or is answered."""
        self.queue.leave(request)
        self._with_instances.pop(request, None)

    # -- when they are handed out --

    def pump_soon(self) -> None:
        """Hand jobs out at the end of this turn of the loop, for all jobs and replies that arrive in it. With sequences
        at once: one may be so short that its next request would find its queue full."""
        if self._stateful:
            self.pump()
        elif self._soon is None:
            self._soon = self._loop.call_soon(self.pump)

    def pump(self) -> None:
        """Hand batches to groups while jobs wait and a group has room."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        delay = 0.0
        if self.routed is not None and len(self.groups) > 1:
            self.routed.hand_out(self.queue, self.groups, self.events.gate)
        elif self.queue.ring:
            delay = self.batched.hand_out(self.queue, self.groups)
        if self.queue.ring or self._stateful:
            self._watch.begin()
            delay = self.sequences.hand_out(self.groups) or delay
        if delay:
            if self._later is not None:
                self._later.cancel()
            self._later = self._loop.call_later(delay, self.pump)

    def put_back(self, jobs: list[Job]) -> None:
        self.queue.put_back(jobs)
        self.pump()

    def group_has_room(self, group: BatchTarget) -> None:
        if self._stateful:
            self.sequences.settle(group)
        if self.queue.ring or self._stateful:
            self.pump_soon()

    def group_ready(self, group: BatchTarget) -> None:
        self.groups.append(group)

    def group_gone(self, group: BatchTarget) -> None:
        """The group takes no more jobs. Idempotent."""
        if group in self.groups:
            self.groups.remove(group)
        if self.routed is not None:
            self.routed.forget(group)
        self.sequences.group_gone(group)

    def fail_all(self, error: ServiceError) -> None:
        """Fail every job that waits."""
        self.queue.fail_all(error)
        self.sequences.fail_all(error)

    def expire(self) -> None:
        """Fail the requests that have waited for longer than `responseTimeout`."""
        self.queue.expire(self._config.response_timeout)
        self.sequences.expire(self._config.response_timeout)

    def close(self) -> None:
        for handle in (self._soon, self._later):
            if handle is not None:
                handle.cancel()
        self._watch.close()
        self.sequences.close()

    # -- what waits --

    @property
    def waiting(self) -> int:
        """Requests of which a job waits for a group."""
        return self.queue.requests + self.sequences.waiting

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest job has waited; 0 when none waits."""
        return max(self.queue.oldest_age, self.sequences.oldest_age)

    @property
    def unbound(self) -> int:
        """Requests that wait, and that another group could take."""
        return self.queue.requests + self.sequences.unbound

    @property
    def oldest_unbound(self) -> float:
        """Seconds that the oldest of them has waited; 0 without any."""
        return max(self.queue.oldest_age, self.sequences.oldest_unbound)

    def bound(self, group: BatchTarget) -> bool:
        """The group has what later requests need, so that it cannot be taken away now."""
        return self.sequences.bound(group)

    def describe(self) -> dict[str, Any]:
        if self._stateful:
            return {"remainingCapacity": self.sequences.capacity - self.waiting, "pendingRequests": self.waiting}
        waiting = self.queue.requests
        described = {"remainingCapacity": self.queue.capacity - waiting, "pendingRequests": waiting}
        classes = {"byPriority": self.queue.by_class()} if isinstance(self.queue, PriorityQueue) else {}
        return {**described, **classes}
