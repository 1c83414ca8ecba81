"""Whether batches that overlap are answered sooner than batches in turn: on a CPU both parts want the same cores."""

from collections import deque

BATCHES = 20
"""Last batches, each behind another one, by whose median overlap is judged: calls that compile count for nothing."""
FEWEST = 5
"""The same in turn, before a worker tries to overlap."""
TOLERANCE = 1.05
"""Overlap stops where a request takes more than this times its seconds in turn: measurements scatter."""
REST = 30.0
"""Seconds until the next trial."""
RENEW = 60.0
"""Seconds after which the batches in turn are measured anew: the machine may do other things now."""


class FollowedBatches:
    """Seconds that a request takes, while one batch follows the other."""

    def __init__(self) -> None:
        self._each: deque[float] = deque(maxlen=BATCHES)
        self._since: float | None = None

    def known(self, batches: int) -> bool:
        return len(self._each) >= batches

    @property
    def seconds(self) -> float:
        """Median; at least one batch must be known."""
        return sorted(self._each)[len(self._each) // 2]

    def ended(self, requests: int, at: float, *, followed: bool) -> None:
        """A batch is over. `followed`: another one waits."""
        if self._since is not None and requests:
            self._each.append((at - self._since) / requests)
        self._since = at if followed else None

    def pause(self) -> None:
        """The next batch runs in the other way."""
        self._since = None


class Comparison:
    """The two ways in which a worker runs its batches."""

    def __init__(self) -> None:
        self.in_turn, self.overlapped = FollowedBatches(), FollowedBatches()
        self._measured: float | None = None
        """When the batches in turn were known."""
        self._rests_until = 0.0

    def allows(self, now: float) -> bool:
        """Whether batches may overlap; `now` is a `time.monotonic()` instant."""
        if self._measured is None:
            if not self.in_turn.known(FEWEST):
                return False
            self._measured = now
        elif now - self._measured > RENEW:
            self.in_turn, self._measured = FollowedBatches(), None
            return False
        elif self.overlapped.known(BATCHES) and self.overlapped.seconds > self.in_turn.seconds * TOLERANCE:
            self._rests_until, self.overlapped = now + REST, FollowedBatches()
        return now >= self._rests_until
