"""How long the steps of a batch take, and what follows from it."""

import time

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
"""Part of `inference` by which the next batch is ready earlier: calls differ in length."""


class Pace:
    """Average seconds of the three steps: each is written by one thread, and read by any."""

    def __init__(self) -> None:
        self.prepare = self.inference = self.answer = 0.0
        self.running_since: float | None = None
        """When the `inference` that runs began, a `time.monotonic()` instant."""
        self.followed = 0.0
        """Part of the last batches behind which another one waited."""
        self._pays = False

    def prepared(self, seconds: float) -> None:
        self.prepare = _mean(self.prepare, seconds)

    def inferred(self, seconds: float) -> None:
        self.inference = _mean(self.inference, seconds)

    def answered(self, seconds: float) -> None:
        self.answer = _mean(self.answer, seconds)

    def ended(self, *, followed: bool) -> None:
        """A batch is over. `followed`: another one was there already."""
        self.followed += WEIGHT * (followed - self.followed)

    @property
    def pays(self) -> bool:
        """Whether batches should overlap: the shorter of the device's part and Python's is what is saved."""
        saved = min(self.inference, self.prepare + self.answer)
        least, part = (STOPS_TO_PAY, FEW_FOLLOW) if self._pays else (BEGINS_TO_PAY, MANY_FOLLOW)
        self._pays = saved > least and self.followed > part
        return self._pays

    @property
    def answers_quickly(self) -> bool:
        return self.answer < SHORT_ANSWER

    def seconds_left(self) -> float:
        """Seconds until preprocess of the next batch has to begin, so that it is ready when `inference` ends; not
        above 0 where it should begin now."""
        since = self.running_since
        if since is None:
            return 0.0
        return since + self.inference * (1 - RESERVE) - self.prepare - time.monotonic()


def _mean(known: float, seconds: float) -> float:
    return known + WEIGHT * (seconds - known) if known else seconds
