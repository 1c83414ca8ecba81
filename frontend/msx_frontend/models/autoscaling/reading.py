"""Input of the decision on the number of workers, and the decision."""

from typing import Literal, NamedTuple

Direction = Literal["up", "down"]


class Reading(NamedTuple):
    """The figures of one model version at one instant; times in seconds."""

    now: float
    """Instant, on any clock that never goes back."""
    queue: int = 0
    """Requests that wait and that another worker could take."""
    oldest: float = 0.0
    """How long the oldest of them has waited."""
    waiting: int = 0
    """All requests that wait, also those that only a certain worker can take."""
    in_flight: int = 0
    answered: float = 0.0
    """Since the start."""
    ready: int = 0
    starting: int = 0
    """Workers that load the model, or restart."""
    least: int = 0
    most: int = 1
    load_seconds: float = 0.0
    """Seconds that a worker takes to load the model; 0 while it is not known."""
    full: bool = False
    """The queue takes no more requests."""
    room: int | None = None
    """How many more workers their devices allow now; None: as many as `most` says."""

    @property
    def present(self) -> int:
        return self.ready + self.starting

    @property
    def demand(self) -> int:
        """Requests that wait or are worked on."""
        return self.waiting + self.in_flight

    @property
    def arrived(self) -> float:
        """Since the start."""
        return self.answered + self.demand


class Decision(NamedTuple):
    wanted: int
    before: int
    """Number of workers wanted until now."""
    reason: str
    """Empty where nothing changes."""
    queue_time: float
    """Wait of a request that comes now, in seconds, as far as it is known."""
    rate: float
    """Requests per second that arrive."""
    capacity: float | None
    """Requests per second that one worker answers; None while it is not known."""
    held_back: bool = False
    """More are needed than the devices allow now."""

    @property
    def direction(self) -> Direction | None:
        return None if self.wanted == self.before else "up" if self.wanted > self.before else "down"
