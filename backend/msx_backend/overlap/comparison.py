"""Whether batches that overlap are answered sooner than batches in turn: on a CPU both parts want the same cores."""

WEIGHT = 0.05
"""Weight of a batch in the averages."""
FEWEST_IN_TURN = 5
"""Batches in turn, each behind another one, before a worker tries to overlap."""
TRIAL = 20
"""Batches that overlap before they are judged."""
TOLERANCE = 1.05
"""Overlap stops where a request takes more than this times its seconds in turn: measurements scatter."""
REST = 30.0
"""Seconds until the next trial."""


class FollowedBatches:
    """Seconds that a request takes, while one batch follows the other."""

    def __init__(self) -> None:
        self.batches = 0
        self.seconds = 0.0
        self._since: float | None = None

    def ended(self, requests: int, at: float, *, followed: bool) -> None:
        """A batch is over. `followed`: another one waits."""
        if self._since is not None and requests:
            self.batches += 1
            each = (at - self._since) / requests
            self.seconds += (each - self.seconds) * max(WEIGHT, 1 / self.batches)
        self._since = at if followed else None

    def pause(self) -> None:
        """The next batch runs in the other way."""
        self._since = None


class Comparison:
    """The two ways in which a worker runs its batches."""

    def __init__(self) -> None:
        self.in_turn, self.overlapped = FollowedBatches(), FollowedBatches()
        self._rests_until = 0.0

    def allows(self, now: float) -> bool:
        """Whether batches may overlap; `now` is a `time.monotonic()` instant."""
        if self.overlapped.batches >= TRIAL and self.overlapped.seconds > self.in_turn.seconds * TOLERANCE:
            self._rests_until, self.overlapped = now + REST, FollowedBatches()
        return self.in_turn.batches >= FEWEST_IN_TURN and now >= self._rests_until
