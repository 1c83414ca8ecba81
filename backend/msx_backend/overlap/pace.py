"""How long the steps of a batch take, and what follows from it."""

import time

from msx_backend.overlap.comparison import Comparison, FollowedBatches

BEGINS_TO_PAY = 150e-6
STOPS_TO_PAY = 100e-6
"""Seconds that overlap saves a batch, from which it is worth handing batches from thread to thread, which takes some 50
microseconds. The two differ so that a worker does not change its mind at each batch."""
MANY_FOLLOW = 0.3
FEW_FOLLOW = 0.1
"""Parts of the batches behind which another one waits. Above the one overlap begins, below the other it stops: a lone
request is answered sooner on one thread."""
SHORT_ANSWER = 200e-6
"""Seconds. A postprocess that takes less runs on the main thread where no batch waits for that: a lone request is
answered sooner without another thread."""
WEIGHT = 0.1
"""Weight of a batch in the averages."""
RESERVE = 0.05
"""Part of that time by which the next batch is ready earlier: calls differ in length."""


class Pace:
    """Average seconds of the three steps: each is written by one thread, and read by any."""

    def __init__(self) -> None:
        self.prepare = self.inference = self.answer = 0.0
        self.occupied = 0.0
        """Average seconds for which a batch keeps the main thread: `inference`, and the wait for the batch before it.
        On a GPU that is longer than `inference`, which returns when the kernels are started."""
        self.running_since: float | None = None
        """When the main thread took the batch that it has, a `time.monotonic()` instant."""
        self.followed = 0.0
        """Part of the last batches behind which another one waited."""
        self.comparison = Comparison()
        self._overlaps = False

    def prepared(self, seconds: float) -> None:
        self.prepare = _mean(self.prepare, seconds)

    def inferred(self, seconds: float) -> None:
        self.inference = _mean(self.inference, seconds)

    def answered(self, seconds: float) -> None:
        self.answer = _mean(self.answer, seconds)

    def begin(self) -> None:
        """The main thread takes a batch."""
        self.running_since = time.monotonic()

    def end(self) -> None:
        """It can take the next one."""
        assert self.running_since is not None
        self.occupied = _mean(self.occupied, time.monotonic() - self.running_since)
        self.running_since = None

    def ended(self, rate: FollowedBatches, requests: int, at: float, *, followed: bool) -> None:
        """A batch is over, which ran in one of the two ways of `comparison`. `followed`: another one was there."""
        rate.ended(requests, at, followed=followed)
        self.followed += WEIGHT * (followed - self.followed)

    def decide(self) -> bool:
        """Decide anew whether batches should overlap: the shorter of the device's part and Python's is what may be
        saved, and the comparison says whether it is. An earlier decision makes the limits of the next one."""
        saved = min(self.inference, self.prepare + self.answer)
        least, part = (STOPS_TO_PAY, FEW_FOLLOW) if self._overlaps else (BEGINS_TO_PAY, MANY_FOLLOW)
        self._overlaps = saved > least and self.followed > part and self.comparison.allows(time.monotonic())
        return self._overlaps

    @property
    def answers_quickly(self) -> bool:
        return self.answer < SHORT_ANSWER

    def seconds_left(self) -> float:
        """Seconds until preprocess of the next batch has to begin, so that it is ready when the main thread is; not
        above 0 where it should begin now."""
        since = self.running_since
        if since is None:
            return 0.0
        return since + self.occupied * (1 - RESERVE) - self.prepare - time.monotonic()


def _mean(known: float, seconds: float) -> float:
    return known + WEIGHT * (seconds - known) if known else seconds
