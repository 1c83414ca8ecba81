"""The bounded queue of one model version: a ring of requests, which take turns."""

import time
from collections import deque
from collections.abc import Iterable

from msx_core.generation import Owner
from msx_core.service_errors import DeadlineExceeded, ServiceError
from msx_frontend.job import ALONE, TORCHSERVES, Job
from msx_frontend.queueing.instances import InstanceRequest, request_of
from msx_frontend.queueing.shared_turn import SharedTurn, place_of

Waiting = Job | InstanceRequest
"""Requests."""
Place = Waiting | SharedTurn
"""Each has one turn at a time."""
LOOKED_AT = 256
"""The most requests of other kinds that a batch passes over to find more of its own."""


class JobQueue:
    """A batch takes one instance of each request in turn. A job is a request of one; jobs with an owner share the
    turns of their key, or of their request.

    So a request that comes is in the next batch while fewer requests than `batchSize` wait. `len` counts jobs: an
    instance that waits is one.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """Requests."""
        self.ring: deque[Place] = deque()
        """Places that wait, the next one first."""
        self._requests: dict[InstanceRequest, None] = {}
        """Requests in the ring that have instances."""
        self._shared: dict[str | int, SharedTurn] = {}
        """Places in the ring of several requests, by what these have in common."""
        self._beyond = 0
        """How many requests wait beyond one a place."""
        self.instances = 0
        """Their instances that wait."""

    def __len__(self) -> int:
        jobs = len(self.ring) - len(self._requests) + self.instances
        return jobs + sum(len(place) - 1 for place in self._shared.values()) if self._shared else jobs

    @property
    def requests(self) -> int:
        """A request of which some instances wait is one."""
        return len(self.ring) + self._beyond

    @property
    def divided(self) -> Iterable[InstanceRequest]:
        """Waiting requests that have instances."""
        return self._requests

    @property
    def full(self) -> bool:
        return len(self.ring) + self._beyond >= self.capacity

    @property
    def head(self) -> Place | None:
        """Whose turn it is."""
        return self.ring[0] if self.ring else None

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest job has waited; 0 when none waits."""
        if not self.ring:
            return 0.0
        mixed = self._requests or self._shared
        oldest = min(one.enqueued for one in self.ring) if mixed else self.ring[0].enqueued
        return time.monotonic() - oldest

    def put(self, job: Job, *, bounded: bool = False) -> bool:
        """Returns False where it is `bounded` by the capacity, and does not fit."""
        if bounded and len(self.ring) + self._beyond >= self.capacity:
            return False
        job.queue = self
        if job.owner is None:
            self.ring.append(job)
        else:
            place = self._place_of(job.owner)
            before = place.requests
            place.put(job)
            self._beyond += place.requests - before
        return True

    def _put_shared_back(self, job: Job, owner: Owner) -> None:
        place = self._place_of(owner)
        before = place.requests
        place.put_back(job)
        self._beyond += place.requests - before
        self.ring.remove(place)
        self.ring.appendleft(place)

    def _place_of(self, owner: Owner) -> SharedTurn:
        """Place of the owner; at the end of the ring, if it is new."""
        name = place_of(owner)
        if (place := self._shared.get(name)) is None:
            place = self._shared[name] = SharedTurn(name)
            self.ring.append(place)
            self._beyond -= 1
        return place

    def put_request(self, request: InstanceRequest) -> None:
        """All of its instances wait."""
        self._requests[request] = None
        self.instances += request.waiting
        self.ring.append(request)

    def put_back(self, jobs: list[Job]) -> None:
        """Put jobs whose batch had not begun when their group ended at the head again, in their order. An instance goes
        back to the place of its request, if others of it wait."""
        for job in reversed(jobs):
            if (request := request_of(job)) is not None:
                self._put_instance_back(request, job)
            elif (owner := job.owner) is not None:
                job.queue = self
                self._put_shared_back(job, owner)
            else:
                job.queue = self
                self.ring.appendleft(job)

    def _put_instance_back(self, request: InstanceRequest, job: Job) -> None:
        if request not in self._requests:
            self._requests[request] = None
            self.ring.appendleft(request)
        request.put_back(job)
        self.instances += 1

    def take(self, limit: int) -> list[Job]:
        """Up to `limit` jobs of the head's kind, in turn; only one of a kind that is never batched."""
        ring, taken = self.ring, list[Job]()
        if not ring:
            return taken
        kind = ring[0].kind
        most = 1 if kind in ALONE else limit
        if self._requests or self._shared:
            return self._take_in_turn(taken, kind, most)
        for _ in range(most if most < len(ring) else len(ring)):
            if ring[0].kind != kind:
                return self._take_in_turn(taken, kind, most)
            job = ring.popleft()
            job.queue = None  # type: ignore[union-attr]  # without requests all are jobs
            taken.append(job)  # type: ignore[arg-type]
        return taken

    def _take_in_turn(self, taken: list[Job], kind: str, most: int) -> list[Job]:
        """Add the next jobs of this kind. Others keep their places."""
        ring, passed = self.ring, list[Place]()
        while ring and len(taken) < most and len(passed) < LOOKED_AT:
            one = ring.popleft()
            if one.kind != kind:
                passed.append(one)
                if kind in TORCHSERVES and one.kind in TORCHSERVES:
                    break
            elif isinstance(one, InstanceRequest):
                taken.append(one.take())
                self.instances -= 1
                if one.waiting:
                    ring.append(one)
                else:
                    del self._requests[one]
            elif isinstance(one, SharedTurn):
                taken.append(self._take_shared(one))
                if one:
                    ring.append(one)
            else:
                one.queue = None
                taken.append(one)
        ring.extendleft(reversed(passed))
        return taken

    def _take_shared(self, place: SharedTurn) -> Job:
        """Its next job. The place is not in the ring."""
        before = place.requests
        job = place.take()
        job.queue = None
        self._shrink(place, before)
        return job

    def _shrink(self, place: SharedTurn, before: int) -> None:
        self._beyond += place.requests - before
        if not place:
            del self._shared[place.name]
            self._beyond += 1

    def discard(self, job: Job) -> None:
        """The job was cancelled."""
        self._remove(job)

    def _remove(self, job: Job) -> None:
        job.queue = None
        if job.owner is None:
            self.ring.remove(job)
            return
        place = self._shared[place_of(job.owner)]
        before = place.requests
        place.remove(job)
        if not place:
            self.ring.remove(place)
        self._shrink(place, before)

    def leave(self, request: InstanceRequest) -> None:
        """None of its instances waits any more. Idempotent."""
        if request in self._requests:
            del self._requests[request]
            self.ring.remove(request)
            self.instances -= request.waiting

    def expire(self, longest_wait: float) -> None:
        """Fail the jobs that have waited for more than `longest_wait` seconds."""
        before = time.monotonic() - longest_wait
        for job in self._jobs_before(before):
            self._remove(job)
            job.fail(_expired(job.model_name, longest_wait))
        for request in [one for one in self._requests if one.enqueued < before]:
            self.leave(request)
            request.fail_waiting(_expired(request.model_name, longest_wait))

    def _jobs_before(self, before: float) -> list[Job]:
        """Jobs stand in the order in which they came; requests and shared places go round between them."""
        found = [job for place in self._shared.values() for job in place if job.enqueued < before]
        for one in self.ring:
            if isinstance(one, Job):
                if one.enqueued >= before:
                    break
                found.append(one)
        return found

    def fail_all(self, error: ServiceError) -> None:
        while self.ring:
            one = self.ring[0]
            if isinstance(one, InstanceRequest):
                self.leave(one)
                one.fail_waiting(error)
            elif isinstance(one, SharedTurn):
                job = one.next
                self._remove(job)
                job.fail(error)
            else:
                self.ring.popleft()
                one.queue = None
                one.fail(error)


def _expired(model: str, longest_wait: float) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"The request waited in the queue of model {model} for {longest_wait:g} s, its "
        f"responseTimeout; add workers or raise responseTimeout."
    )
