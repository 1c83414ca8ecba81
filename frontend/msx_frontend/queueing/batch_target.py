"""Target to which the dispatcher hands batches."""

from typing import Protocol

from msx_frontend.job import Job


class BatchTarget(Protocol):
    """A worker group, as the dispatcher sees it. Every call is made on the loop's thread and returns at once."""

    @property
    def busy(self) -> int:
        """Jobs in flight."""

    @property
    def idle(self) -> bool:
        """It is ready and has no job in flight."""

    @property
    def is_async(self) -> bool:
        """It takes requests one by one, at any time: an async handler, or a continuous one."""

    @property
    def continuous(self) -> bool:
        """The handler is called again and again, each time with the requests that are there (`continuousBatching`)."""

    @property
    def overlaps(self) -> bool:
        """It preprocesses a batch while inference of the one before it runs."""

    def room(self, *, ahead: int = 0) -> int:
        """Jobs that it takes now; up to `ahead` batches may wait behind the running one."""

    @property
    def room_to_join(self) -> int:
        """Jobs that it takes for the batch that its worker begins next, while others run."""

    def predict(self, jobs: list[Job], *, joins: bool = False) -> None:
        """Send a batch, or several full ones. They leave with `flush`.

        `joins`: the worker may run it together with later batches that are sent before it begins.
        """

    def flush(self) -> None:
        """Write what `predict` has taken."""

    def typical_seconds(self, kind: str) -> float:
        """Seconds of the device for a batch of this method on average; infinity before the first one has finished."""

    def holds(self, job: Job) -> bool:
        """The worker has the job and has not sent the last of its reply."""

    def cancel(self, job: Job) -> None:
        """The job's client has left: tell the worker."""
