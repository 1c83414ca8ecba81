"""The turn in the ring of a queue that several requests share."""

from collections.abc import Iterator

from msx_core.generation import Owner
from msx_core.turn_ring import TurnRing
from msx_frontend.job import Job


def place_of(owner: Owner) -> str | int:
    """Return what requests that share a turn have in common: their key, and without one the request itself."""
    return owner.key or owner.request


class SharedTurn:
    """The requests of one key, or the jobs of one request: in each turn one job, of each request in turn."""

    __slots__ = ("_jobs", "name")

    def __init__(self, name: str | int) -> None:
        self.name = name
        self._jobs: TurnRing[int, Job] = TurnRing()

    def __len__(self) -> int:
        """Jobs."""
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    @property
    def requests(self) -> int:
        return self._jobs.owners

    @property
    def next(self) -> Job:
        return next(self._jobs.heads)

    @property
    def kind(self) -> str:
        return self.next.kind

    @property
    def version(self) -> str | None:
        return self.next.version

    @property
    def enqueued(self) -> float:
        """When the job came that has waited longest."""
        return min(job.enqueued for job in self._jobs.heads)

    def put(self, job: Job) -> None:
        self._jobs.put(_request(job), job)

    def put_back(self, job: Job) -> None:
        self._jobs.put_back(_request(job), job)

    def take(self) -> Job:
        return self._jobs.take()

    def remove(self, job: Job) -> None:
        self._jobs.remove(_request(job), job)


def _request(job: Job) -> int:
    assert job.owner is not None
    return job.owner.request
