"""How many requests of a model version wait and run, each of them counted once."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from msx_frontend.queueing.instances import request_of
from msx_frontend.queueing.job_queue import JobQueue, Waiting
from msx_frontend.workers.batch_runner import BatchRunner


class RequestCounts(NamedTuple):
    """A request is in one of them: `running` if a worker works on it, or on an instance of it."""

    queued: int
    running: int


class QueueLoad(NamedTuple):
    """`places`: requests that workers take at once; `taken`: those that they have, and that wait; `is_wanted`: some
    wait that are not of the lowest class, or in an engine; `is_held`: for a place; `answered`: requests since the
    start."""

    places: int
    taken: int
    is_wanted: bool
    is_held: bool
    answered: float


class CountedGroup(Protocol):
    @property
    def number(self) -> int: ...
    @property
    def runner(self) -> BatchRunner: ...


def count_requests(queue: JobQueue, groups: Iterable[CountedGroup], held_back: Callable[[int], int]) -> RequestCounts:
    """`held_back`: of what the worker of this number was given, how many wait for a place in its engine's batch."""
    running, ahead, behind = set[Waiting](), set[Waiting](), 0
    for group in groups:
        begun, others = group.runner.in_flight.by_begin()
        running.update(request_of(job) or job for job in begun)
        ahead.update(request_of(job) or job for job in others)
        behind += min(held_back(group.number), len(begun))
    divided: set[Waiting] = {*queue.divided}
    queued = queue.requests - len(divided & running) + len(ahead - running - divided)
    return RequestCounts(queued + behind, len(running) - behind)
