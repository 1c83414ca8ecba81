"""How many workers a model version should have. docs/autoscaling.md explains the rule.

No clock, no task, no logging: the server and the simulation of `benchmarks/autoscaling` run this code.
"""

from math import ceil, inf

from msx_core.config import AutoscalingOptions
from msx_frontend.models.autoscaling.history import History, TooFew
from msx_frontend.models.autoscaling.reading import Decision, Reading
from msx_frontend.models.autoscaling.staffing import enough_for_in_flight, enough_for_queue_time

CATCH_UP = 30.0
"""Seconds in which new workers should have worked off what waits when they are ready."""

LESS = 0.8
"""Share of the rate of requests for which some workers were too few: below it so many may be enough."""

FULL_STEP = 1.5
"""A full queue hides how many requests come: at least so many times the workers."""


def decide(reading: Reading, options: AutoscalingOptions, history: History) -> Decision:
    """`history` is changed; call this with readings in the order of their times."""
    history.add(reading)
    return _Judgement(reading, options, history).decision()


class _Judgement:
    """One reading against the targets."""

    def __init__(self, reading: Reading, options: AutoscalingOptions, history: History) -> None:
        self.reading, self.options, self.history = reading, options, history
        self.capacity, self.rate = history.capacity, history.rate
        self.floor = self._floor()
        self.held_back = False

    def decision(self) -> Decision:
        history, before = self.history, self.history.wanted
        self._look_at_target()
        wanted, reason = self._wanted(min(max(before, self.reading.least), self.reading.most))
        if wanted > before:
            history.changed_at = self.reading.now
            history.too_few = TooFew(before, self.rate)
        history.wanted = wanted
        if wanted != before and not reason:
            reason = f"the bounds are {self.reading.least} and {self.reading.most}"
        return Decision(wanted, before, reason, self.queue_time, self.rate, self.capacity, self.held_back)

    def _wanted(self, wanted: int) -> tuple[int, str]:
        if wanted == 0 < self.floor:
            return self.floor, "a request waits, and there is no worker"
        if (more := self._up(wanted)) > wanted:
            return more, self._why_up()
        if (fewer := self._down(wanted)) < wanted:
            return fewer, self._why_down(fewer)
        return wanted, ""

    def _floor(self) -> int:
        """None only where `minWorkers` is 0 and no request has been there for the idle time."""
        reading, active = self.reading, self.history.active_at
        if reading.least or self.reading.most == 0:
            return reading.least
        if not self.history.wanted:
            return 1 if reading.waiting else 0
        return 0 if active is None or reading.now - active >= self.options.idle_time else 1

    # -- the target --

    @property
    def queue_time(self) -> float:
        """Wait of the oldest request, or of one that comes now, in seconds."""
        reading = self.reading
        if not reading.queue:
            return 0.0
        expected = reading.queue / (self.capacity * reading.ready) if self.capacity and reading.ready else 0.0
        return max(reading.oldest, expected)

    def _look_at_target(self) -> None:
        """Before the first worker is ready nothing is known of what it can do."""
        if not self.reading.ready or not self._missed():
            self.history.above_since = None
        elif self.history.above_since is None:
            self.history.above_since = self.reading.now

    def _missed(self) -> bool:
        target = self.options.target_in_flight
        if target is None:
            return self.reading.full or self.queue_time > self.options.queue_seconds
        return self.reading.queue + self.reading.in_flight > target * self.reading.present

    # -- more workers --

    def _up(self, wanted: int) -> int:
        since, reading = self.history.above_since, self.reading
        if since is None or reading.now - since < self.options.up_delay:
            return wanted
        need = min(self._needed_for_target(wanted), reading.most)
        now = need if reading.room is None else min(need, reading.present + reading.room)
        self.held_back = max(wanted, now) < need
        return max(wanted, now)

    def _needed_for_target(self, wanted: int) -> int:
        reading = self.reading
        if self.capacity is None and self.options.target_in_flight is None:
            return wanted + 1 if wanted == reading.ready else wanted
        need = self._enough(self.rate, self.history.mean_demand())
        if not self._clears():
            need = max(need, self._enough_for_backlog())
        if reading.full:
            need = max(need, ceil(FULL_STEP * reading.ready))
        return need

    def _clears(self) -> bool:
        """Whether the workers that are there work off the queue before another one could help."""
        if self.capacity is None:
            return False
        spare = self.capacity * self.reading.present - self._recent_rate()
        return spare > 0 and self.reading.queue / spare <= max(self.reading.load_seconds, self.options.up_delay)

    def _enough_for_backlog(self) -> int:
        """Workers for what comes now, and for what will wait by the time that they are ready."""
        recent = max(self._recent_rate(), self.rate)
        if (target := self.options.target_in_flight) is not None:
            return enough_for_in_flight(self.history.mean_demand(self.options.up_delay), target, self.reading.most)
        assert self.capacity is not None
        grows = max(recent - self.capacity * self.reading.present, 0.0) * self.reading.load_seconds
        catching_up = recent + (self.reading.queue + grows) / CATCH_UP
        return max(self._enough(recent, 0.0), min(ceil(catching_up / self.capacity), self.reading.most))

    def _recent_rate(self) -> float:
        """A burst is over when nothing more of it has come since the last reading."""
        history = self.history
        return min(history.recent_rate(max(self.options.up_delay, 1.0)), history.last_rate)

    def _enough(self, rate: float, demand: float) -> int:
        if (target := self.options.target_in_flight) is not None:
            return enough_for_in_flight(demand, target, self.reading.most)
        if self.capacity is None:
            return 1
        return enough_for_queue_time(rate, self.capacity, self.options.queue_seconds, self.reading.most)

    # -- fewer workers --

    def _down(self, wanted: int) -> int:
        reading, history = self.reading, self.history
        need = max(self._needed_now(wanted), self.floor)
        most = history.most_needed(reading.now, need, self.options.down_delay)
        if not self.floor:
            return 0
        if history.changed_at is None or reading.now - history.changed_at < self.options.down_delay:
            return wanted
        return max(self._not_again_too_few(min(most, wanted), wanted), reading.least)

    def _needed_now(self, wanted: int) -> int:
        """A worker that is busy has a request at least, so that what is in flight bounds the need."""
        if self.history.above_since is not None:
            return wanted
        reading, history = self.reading, self.history
        if (target := self.options.target_in_flight) is not None:
            need = enough_for_in_flight(history.mean_demand(), target, reading.most)
            return (
                max(need, enough_for_queue_time(self.rate, self.capacity, inf, reading.most)) if self.capacity else need
            )
        if not (busy := history.mean_in_flight()):
            return 1
        if not self.rate:
            return enough_for_in_flight(busy, LESS, reading.most)
        bound = enough_for_queue_time(self.rate, self.rate / busy, self.options.queue_seconds, reading.most)
        return min(bound, self._enough(self.rate, 0.0)) if self.capacity else bound

    def _not_again_too_few(self, need: int, wanted: int) -> int:
        too_few = self.history.too_few
        if too_few is not None and need <= too_few.workers and self.rate > LESS * too_few.rate:
            return min(too_few.workers + 1, wanted)
        return need

    # -- in words --

    def _why_up(self) -> str:
        reading = self.reading
        if reading.full:
            return "the queue is full"
        if (target := self.options.target_in_flight) is not None:
            return f"more than {target:g} requests for each worker"
        if self.capacity is None:
            return f"the queue time is above {self.options.queue_seconds:g} s"
        return f"the queue time is above {self.options.queue_seconds:g} s, and present workers do not mend that"

    def _why_down(self, wanted: int) -> str:
        if not wanted:
            return f"no request for {self.options.idle_time:g} s"
        return f"fewer were enough for {self.options.down_delay:g} s"
