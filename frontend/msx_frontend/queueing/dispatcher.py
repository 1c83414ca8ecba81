"""From the queue of a model version to its groups: admission, batches, tickets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from msx_core.config import ModelConfig
from msx_frontend.errors import Overloaded, ServiceError, ServiceUnavailable
from msx_frontend.job import PREDICT, STREAM, Job
from msx_frontend.priorities import asked_priority
from msx_frontend.queueing.batch_target import BatchTarget
from msx_frontend.queueing.batched_jobs import BatchedJobs
from msx_frontend.queueing.batching import BatchingPolicy, make_policy
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.queueing.job_queue import JobQueue, Place, Waiting
from msx_frontend.queueing.priority_queue import PriorityQueue
from msx_frontend.queueing.queue_watch import QueueWatch
from msx_frontend.queueing.refusals import refusal, too_large, too_late
from msx_frontend.queueing.routing.routed import RoutedJobs
from msx_frontend.queueing.tickets import free_tickets


class Dispatcher:
    """Owns the queue of a model version. `groups` are the worker groups that are ready."""

    def __init__(self, name: str, version: str, config: ModelConfig) -> None:
        self._name = name
        self._version = version
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._streams_share = config.stream_batching or config.continuous_batching
        self.queue = JobQueue(config.job_queue_size)
        self.prioritised: Callable[[int], None] = lambda priority: None
        """Called with the class of each request that asks for one."""
        self.policy: BatchingPolicy = make_policy(
            config.batching_policy, config.batch_size, config.max_batch_delay / 1000
        )
        self._batched = BatchedJobs(config, self.policy)
        self.answered: float = 0
        """Requests that workers have answered since the start; one of n instances counts 1/n with each."""
        self._with_instances: dict[InstanceRequest, None] = {}
        """Requests with instances that are not answered."""
        self._watch = QueueWatch(self)
        self.groups: list[BatchTarget] = []
        self.expecting_workers = False
        self.refusal = ""
        """Why requests are refused while all workers have failed; "" while they may wait for workers."""
        self.asked: Callable[[], bool] = _nobody
        """Called when a request is taken while no group is ready; tells whether requests start one."""
        self.routed: RoutedJobs | None = None
        """Chooses workers for texts; None for other models."""
        self._soon: asyncio.Handle | None = None
        self.gate: Callable[[Sequence[Job]], int] | None = None
        """Tells how many of the next jobs may be handed out now. Without it all may."""
        self._waiting: asyncio.TimerHandle | None = None

    def submit(self, job: Job) -> None:
        """Queue the job. Raises at once the ServiceError that the client gets, if it cannot be taken."""
        if not self.groups:
            self._check_may_serve(job)
        if self._config.use_job_ticket:
            self._check_ticket(job)
        if job.kind == STREAM and self._streams_share:
            job.kind = PREDICT
        self._put(job, self._queue_of(job))

    def pass_on(self, job: Job) -> None:
        """Queue a job for which the stage before has kept a place: neither a full queue nor tickets refuse it.

        Raises ServiceUnavailable.
        """
        if not self.groups:
            self._check_may_serve(job)
        self._put(job, self.queue)

    def _put(self, job: Job, queue: JobQueue) -> None:
        if job.deadline is not None:
            job.timer = self._loop.call_later(max(job.deadline - time.monotonic(), 0), self._expired, job)
        self.policy.arrived(job.enqueued)
        if asked_priority(job) and queue is self.queue:
            queue = self._with_priorities(job)
        queue.put(job)
        self.pump_soon()

    def submit_instances(self, request: InstanceRequest) -> None:
        """Queue all instances of the request. Raises at once the ServiceError that the client gets, if they cannot be
        taken; then none is."""
        if not self.groups:
            self._check_may_serve(request)
        if self._config.use_job_ticket:
            self._check_ticket(request)
        self._check_instances(request)
        queue = self._with_place(request)
        if request.deadline is not None:
            left = max(request.deadline - time.monotonic(), 0)
            request.timer = self._loop.call_later(left, self._request_expired, request)
        request.place = self
        self._with_instances[request] = None
        self.policy.arrived(request.enqueued)
        if asked_priority(request):
            queue = self._with_priorities(request)
        queue.put_request(request)
        self.pump_soon()

    def _with_priorities(self, asked: Waiting) -> JobQueue:
        """From the first request that asks for a class on; without one the queue has no classes."""
        if not isinstance(self.queue, PriorityQueue):
            self.queue = PriorityQueue(self.queue)
        self.prioritised(asked_priority(asked))
        return self.queue

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

    def _check_ticket(self, job: Waiting) -> None:
        """Raises Overloaded. The request that starts the first worker has the ticket that it will have."""
        if not self.groups and not self.waiting and self.asked():
            return
        if free_tickets(self.groups, self.waiting, self._with_instances) <= 0:
            reason = "no job ticket is free: every worker is busy and useJobTicket is on"
            raise self._overloaded(job, reason)

    def has_sequence_of(self, job: Job) -> bool:
        """Whether the job goes on with a sequence that is open here."""
        return False

    def instance_answered(self, request: InstanceRequest) -> None:
        self.answered -= 1 - 1 / request.size

    def leave(self, request: InstanceRequest) -> None:
        """None of its instances waits any more: it was cancelled, or is answered."""
        self.queue.leave(request)
        self._with_instances.pop(request, None)

    @property
    def may_serve(self) -> bool:
        """A group is ready, or will probably be soon."""
        return bool(self.groups) or (self.expecting_workers and not self.refusal)

    def _check_may_serve(self, job: Waiting) -> None:
        """Raises ServiceUnavailable."""
        if not self.may_serve:
            raise ServiceUnavailable(self.refusal or self._refusal(job, ""))
        self.asked()

    def _queue_of(self, job: Job) -> JobQueue:
        """The queue that the job waits in. Raises Overloaded."""
        return self._with_place(job)

    def _with_place(self, job: Waiting) -> JobQueue:
        """The queue, which has a place left. Raises Overloaded."""
        if self.queue.full:
            self.pump()  # jobs that arrived in this turn of the loop may go to a worker that is free
            if not self.queue.full:
                return self.queue
            raise self._overloaded(job, f"the queue is full: jobQueueSize is {self.queue.capacity}")
        return self.queue

    def pump_soon(self) -> None:
        """At the end of this turn of the loop, for all jobs and replies that arrive in it."""
        if self._soon is None:
            self._soon = self._loop.call_soon(self.pump)

    def pump(self) -> None:
        """Hand batches to groups while jobs wait and a group has room."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self.queue:
            self._hand_out()
        self._watch.begin()

    def _hand_out(self) -> None:
        if self.routed is not None and len(self.groups) > 1:
            self.routed.hand_out(self.queue, self.groups, self._admitted)
        elif delay := self._batched.hand_out(self.queue, self.groups, self._admitted):
            self._pump_later(delay)

    def _admitted(self, jobs: list[Job]) -> list[Job]:
        """Those that the gate lets pass; the others are at the head of the queue again."""
        if self.gate is None or (count := self.gate(jobs)) == len(jobs):
            return jobs
        self.queue.put_back(jobs[count:])
        return jobs[:count]

    def put_back(self, jobs: list[Job]) -> None:
        self.queue.put_back(jobs)
        self.pump()

    def group_has_room(self, group: BatchTarget) -> None:
        if self.waiting:
            self.pump_soon()

    def group_ready(self, group: BatchTarget) -> None:
        self.groups.append(group)

    def group_gone(self, group: BatchTarget) -> None:
        """The group takes no more jobs. Idempotent."""
        if group in self.groups:
            self.groups.remove(group)
        if self.routed is not None:
            self.routed.forget(group)

    def fail_all(self, error: ServiceError) -> None:
        """Fail every job that waits."""
        self.queue.fail_all(error)

    @property
    def waiting(self) -> int:
        """Requests of which a job waits for a group."""
        return self.queue.requests

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest job has waited; 0 when none waits."""
        return self.queue.oldest_age

    @property
    def unbound(self) -> int:
        """Requests that wait, and that another group could take."""
        return self.waiting

    @property
    def oldest_unbound(self) -> float:
        """Seconds that the oldest of them has waited; 0 without any."""
        return self.oldest_age

    def bound(self, group: BatchTarget) -> bool:
        """The group has what later requests need, so that it cannot be taken away now."""
        return False

    def close(self) -> None:
        for handle in (self._soon, self._waiting):
            if handle is not None:
                handle.cancel()
        self._watch.close()

    def _pump_later(self, delay: float) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self._loop.call_later(delay, self.pump)

    def expire(self) -> None:
        """Fail the requests that have waited for longer than `responseTimeout`."""
        self.queue.expire(self._config.response_timeout)

    def _expired(self, job: Job) -> None:
        job.cancel(too_late(self._name, job, "running" if job.queue is None else "waiting in the queue"))

    def _request_expired(self, request: InstanceRequest) -> None:
        where = "waiting in the queue" if request.waiting == request.size else "running"
        request.cancel(too_late(self._name, request, where))

    def _overloaded(self, job: Waiting, reason: str) -> Overloaded:
        """With the time after which the jobs that wait now will have been answered."""
        at_once = self._config.batch_size * max(len(self.groups), 1)
        plain = f"{reason[0].upper()}{reason[1:]} (model {self._name}). Ask again later, or add workers."
        return Overloaded(self._refusal(job, reason), plain=plain, wait=self._watch.seconds(at_once))

    def _refusal(self, job: Place, reason: str) -> str:
        return refusal(self._name, self._version, job, reason)

    def describe(self) -> dict[str, Any]:
        waiting = self.queue.requests
        described = {"remainingCapacity": self.queue.capacity - waiting, "pendingRequests": waiting}
        classes = {"byPriority": self.queue.by_class()} if isinstance(self.queue, PriorityQueue) else {}
        return {**described, **classes}


def _nobody() -> bool:
    return False
