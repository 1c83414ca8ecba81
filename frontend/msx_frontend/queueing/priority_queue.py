"""The queue of a model version whose requests have different priorities: a ring for each class."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from msx_core.priorities import FROM_HIGH, NAMES, NORMAL
from msx_core.service_errors import ServiceError
from msx_frontend.job import ALONE, Job
from msx_frontend.queueing.instances import InstanceRequest
from msx_frontend.queueing.job_queue import JobQueue, Place

TURNS = 8
"""After so many batches of higher classes one begins with the class that waits: none starves."""


class PriorityQueue(JobQueue):
    """A batch begins with the highest class that waits, and takes what room is left from the others.

    A class that was passed over `TURNS` times is next: a request with n ahead of it in its class is taken within
    (n + 1) × (`TURNS` + 2) batches, whatever comes later.
    """

    def __init__(self, usual: JobQueue) -> None:
        """It takes the place of `usual`, with what waits there."""
        self.capacity = usual.capacity
        self._rings = {priority: usual if priority == NORMAL else JobQueue(usual.capacity) for priority in FROM_HIGH}
        self._passed = dict.fromkeys(FROM_HIGH, 0)

    def __len__(self) -> int:
        return sum(map(len, self._rings.values()))

    @property
    def instances(self) -> int:  # type: ignore[override]  # of all classes
        return sum(ring.instances for ring in self._rings.values())

    @property
    def requests(self) -> int:
        return sum(ring.requests for ring in self._rings.values())

    @property
    def divided(self) -> Iterable[InstanceRequest]:
        return chain.from_iterable(ring.divided for ring in self._rings.values())

    @property
    def full(self) -> bool:
        return self.requests >= self.capacity

    @property
    def ring(self) -> deque[Place]:  # type: ignore[override]  # of the class that is next
        return self._rings[NORMAL if (priority := self._next()) is None else priority].ring

    @property
    def oldest_age(self) -> float:
        return max(ring.oldest_age for ring in self._rings.values())

    def by_class(self) -> dict[str, int]:
        """How many requests of each class wait."""
        return {name: self._rings[priority].requests for name, priority in NAMES.items()}

    def put(self, job: Job, *, bounded: bool = False) -> bool:
        return not (bounded and self.full) and self._rings[job.priority].put(job)

    def put_request(self, request: InstanceRequest) -> None:
        self._rings[request.priority].put_request(request)

    def put_back(self, jobs: list[Job]) -> None:
        for priority, ring in self._rings.items():
            ring.put_back([job for job in jobs if job.priority == priority])

    def take(self, limit: int) -> list[Job]:
        first = self._next()
        if first is None or limit < 1:
            return []
        for priority in self._waiting():
            self._passed[priority] += priority < first
        taken = self._taken(first, limit)
        if taken and (kind := taken[0].kind) not in ALONE:
            for priority in self._waiting():
                while len(taken) < limit and (more := self._more(priority, kind, limit - len(taken))):
                    taken += more
        return taken

    def _more(self, priority: int, kind: str, room: int) -> list[Job]:
        ring = self._rings[priority].ring
        return self._taken(priority, room) if ring and ring[0].kind == kind else []

    def _taken(self, priority: int, room: int) -> list[Job]:
        self._passed[priority] = 0
        return self._rings[priority].take(room)

    def _next(self) -> int | None:
        """The class that the next batch begins with."""
        waiting = list(self._waiting())
        due = [priority for priority in waiting if self._passed[priority] >= TURNS]
        return max(due, key=self._passed.__getitem__) if due else waiting[0] if waiting else None

    def _waiting(self) -> Iterator[int]:
        return (priority for priority in FROM_HIGH if self._rings[priority].ring)

    def leave(self, request: InstanceRequest) -> None:
        self._rings[request.priority].leave(request)

    def expire(self, longest_wait: float) -> None:
        for ring in self._rings.values():
            ring.expire(longest_wait)

    def fail_all(self, error: ServiceError) -> None:
        for ring in self._rings.values():
            ring.fail_all(error)
