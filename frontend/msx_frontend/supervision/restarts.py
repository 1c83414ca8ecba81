"""When a crashed frontend is followed by another one, and how long worker groups wait for that."""

import time
from collections.abc import Callable

from msx_frontend.supervision.wire import Message

PAUSES = (0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before the next start; the last one repeats."""
PROVEN = 10.0
"""Seconds of answering, after which earlier crashes are forgotten."""


class Restarts:
    """Groups wait `keep_groups` seconds for a frontend that takes them over: so much as the last one has said that has
    answered."""

    def __init__(self, keep_groups: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.keep_groups, self._clock = keep_groups, clock
        self._crashes = 0
        self._started: float | None = None
        self._down: float | None = None
        """When the last frontend that had answered has crashed; None where none has since the groups were ended."""
        self.next_start: float | None = None

    def passed(self) -> Message:
        """Its part of the supervisor's state. The clock is the machine's."""
        clocks = {"started": self._started, "down": self._down, "next": self.next_start}
        return {"crashes": self._crashes, "keep_groups": self.keep_groups, **clocks}

    def restore(self, given: Message) -> None:
        self._crashes, self._started = given["crashes"], given["started"]
        self._down, self.next_start = given["down"], given["next"]
        self.keep_groups = given.get("keep_groups", self.keep_groups)

    def started(self, keep_groups: float | None = None) -> None:
        """A frontend answers its clients. Without `keep_groups`, groups wait as long as before."""
        self._started = self._clock()
        self.keep_groups = self.keep_groups if keep_groups is None else keep_groups

    def crashed(self) -> None:
        now = self._clock()
        if self._started is not None:
            self._crashes = 0 if self.is_proven else self._crashes
            self._down, self._started = now, None
        self.next_start = now + PAUSES[min(self._crashes, len(PAUSES) - 1)]
        self._crashes += 1

    @property
    def is_proven(self) -> bool:
        """The frontend has answered for a while."""
        return self._started is not None and self._clock() - self._started >= PROVEN

    @property
    def seconds_to_proof(self) -> float | None:
        """Until it has; None: it has, or does not answer."""
        if self._started is None or self.is_proven:
            return None
        return max(self._started + PROVEN - self._clock(), 0.0)

    @property
    def is_due(self) -> bool:
        return self.next_start is not None and self._clock() >= self.next_start

    @property
    def groups_are_overdue(self) -> bool:
        """Groups have waited for `keep_groups` seconds."""
        return self._down is not None and self._clock() - self._down >= self.keep_groups

    def groups_wait(self) -> None:
        """Groups wait for the frontend that runs, from now on."""
        self._down = self._clock()

    def groups_ended(self) -> None:
        self._down = None

    @property
    def gives_up(self) -> bool:
        """No frontend has answered since the groups that waited for it were ended."""
        return self._started is None and self._down is None

    def seconds_left(self) -> float | None:
        """Until something is due; None: nothing is."""
        due = [] if self._down is None else [self._down + self.keep_groups]
        due += [] if self.next_start is None else [self.next_start]
        return max(min(due) - self._clock(), 0.0) if due else None
