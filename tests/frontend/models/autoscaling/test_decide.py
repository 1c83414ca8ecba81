"""The decision on the number of workers: a table of situations, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_core.config import AutoscalingOptions
from msx_frontend.models.autoscaling.decide import decide
from msx_frontend.models.autoscaling.history import History
from msx_frontend.models.autoscaling.reading import Decision, Reading
from msx_frontend.models.autoscaling.staffing import enough_for_in_flight, enough_for_queue_time, queue_time

STEP = 0.5
IN_FLIGHT = AutoscalingOptions(target_in_flight=4.0)
QUEUE_TIME = AutoscalingOptions()


@dataclass
class Fluid:
    """Workers that answer `each` requests per second, of those that have come, without chance. What is wanted is there
    after `load` seconds."""

    options: AutoscalingOptions = QUEUE_TIME
    workers: int = 1
    each: float = 10.0
    load: float = 5.0
    least: int = 1
    most: int = 8
    now: float = 0.0
    there: float = 0.0
    answered: float = 0.0
    history: History = field(init=False)
    starting: list[float] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = History(self.workers)

    def run(self, rates: Iterable[float]) -> Fluid:
        for rate in rates:
            self.step(rate)
        return self

    def step(self, rate: float) -> Decision:
        self.now += STEP
        self.workers += sum(at <= self.now for at in self.starting)
        self.starting = [at for at in self.starting if at > self.now]
        done = min(self.there + rate * STEP, self.workers * self.each * STEP)
        self.there += rate * STEP - done
        self.answered += done
        in_flight = min(round(self.there + done / self.each / STEP), self.workers)
        queue = max(round(self.there) - self.workers, 0)
        oldest = queue / (self.workers * self.each) if self.workers else queue and self.history.wanted * STEP
        found = Reading(
            self.now,
            queue,
            oldest,
            queue,
            in_flight,
            self.answered,
            self.workers,
            len(self.starting),
            self.least,
            self.most,
            self.load,
        )
        decision = decide(found, self.options, self.history)
        self._obey(decision)
        return decision

    def _obey(self, decision: Decision) -> None:
        more = decision.wanted - self.workers - len(self.starting)
        if decision.direction:
            self.decisions.append(decision)
        if more >= 0:
            self.starting += [self.now + self.load] * more
        else:
            self.starting, self.workers = [], decision.wanted

    @property
    def directions(self) -> list[str | None]:
        return [decision.direction for decision in self.decisions]


def steady(rate: float, seconds: float) -> list[float]:
    return [rate] * int(seconds / STEP)


@pytest.mark.parametrize(
    ("situation", "rates", "wanted"),
    [
        (Fluid(), steady(5, 120), 1),
        (Fluid(), steady(35, 10), 5),
        (Fluid(most=3), steady(35, 60), 3),
        (Fluid(most=3), steady(1000, 60), 3),
        (Fluid(load=20), [*steady(2, 20), 400, *steady(2, 20)], 2),  # a burst that takes longer than a load
        (Fluid(load=20), [*steady(2, 20), 60, *steady(2, 20)], 1),  # a burst that is over before a worker could help
        (Fluid(workers=6), steady(0, 120), 1),
        (Fluid(workers=6, least=2), steady(0, 120), 2),
        (Fluid(workers=6), steady(0, 55), 6),
        (Fluid(workers=2, least=0), steady(0, 200), 1),
        (Fluid(workers=2, least=0), steady(0, 310), 0),
        (Fluid(workers=0, least=0), steady(0, 310), 0),
        (Fluid(workers=0, least=0), [10], 1),
        (Fluid(workers=0, least=0, load=20), [10, *steady(10, 20)], 1),
        (Fluid(IN_FLIGHT), steady(60, 10), 8),
    ],
    ids=lambda value: None if isinstance(value, (list, int)) else "",
)
def test_wanted(situation: Fluid, rates: list[float], wanted: int) -> None:
    assert situation.run(rates).history.wanted == wanted


def test_a_queue_that_stays_is_decided_on_within_two_seconds() -> None:
    fluid = Fluid().run(steady(5, 30))
    begun = fluid.now
    fluid.run(steady(100, 2))
    assert fluid.directions[:1] == ["up"]
    assert fluid.now - begun <= 2


def test_delays_are_obeyed() -> None:
    options = AutoscalingOptions(up_delay=10.0, down_delay=20.0)
    fluid = Fluid(options).run(steady(100, 9.5))
    assert fluid.decisions == []
    fluid.run(steady(100, 5))
    assert fluid.directions[:1] == ["up"]
    assert Fluid(options, workers=4).run(steady(0, 19)).history.wanted == 4
    assert Fluid(options, workers=4).run(steady(0, 21)).history.wanted == 1


def test_workers_that_start_count_already() -> None:
    fluid = Fluid(load=30, most=50).run(steady(100, 25))
    wanted = fluid.history.wanted
    fluid.run(steady(100, 3))
    assert 10 < wanted <= fluid.history.wanted <= 25


def test_while_no_worker_has_answered_one_at_a_time_is_added() -> None:
    options, history = AutoscalingOptions(), History(1)
    found = [
        decide(Reading(now=t / 2, queue=50, oldest=t / 2, waiting=50, in_flight=1, ready=1, most=8), options, history)
        for t in range(20)
    ]
    assert found[-1].wanted == 2, "the one that it was raised by is not there yet"
    assert "above 0.2 s" in next(one.reason for one in found if one.direction)


def test_a_full_queue_hides_how_many_come() -> None:
    history = History(4)
    readings = [Reading(t / 2, 100, 1, 100, 4, 20 * t, 4, 0, 1, 32, 5, full=True) for t in range(20)]
    assert [decide(one, QUEUE_TIME, history) for one in readings][-1].wanted >= 6


@pytest.mark.parametrize(
    ("room", "starting", "options", "wanted", "held_back"),
    [
        (None, 0, QUEUE_TIME, 6, False),
        (9, 0, QUEUE_TIME, 6, False),
        (1, 0, QUEUE_TIME, 5, True),
        (0, 0, QUEUE_TIME, 4, True),
        (1, 1, QUEUE_TIME, 6, False),  # the one that starts is there already
        (0, 0, IN_FLIGHT, 4, True),
        (1, 0, IN_FLIGHT, 5, True),
    ],
)
def test_no_more_than_the_devices_have_room_for(
    room: int | None, starting: int, options: AutoscalingOptions, wanted: int, *, held_back: bool
) -> None:
    history = History(4 + starting)
    full = Reading(0, 100, 1, 100, 4, 0, 4, starting, 1, 6, 5, full=True, room=room)
    readings = [full._replace(now=t / 2, answered=20.0 * t) for t in range(20)]
    first = next(one for one in (decide(one, options, history) for one in readings) if one.direction or one.held_back)
    assert (first.wanted, first.held_back) == (wanted, held_back)


def test_a_device_without_room_takes_no_worker_away() -> None:
    history = History(4)
    readings = [Reading(t / 2, 100, 1, 100, 4, 20 * t, 4, 0, 1, 8, 5, room=0) for t in range(40)]
    assert {decide(one, QUEUE_TIME, history).wanted for one in readings} == {4}


def test_the_bounds_count_at_once() -> None:
    history = History(5)
    assert decide(Reading(0, ready=5, least=1, most=2), QUEUE_TIME, history).wanted == 2
    decision = decide(Reading(1, ready=2, least=4, most=8), QUEUE_TIME, history)
    assert (decision.wanted, decision.reason) == (4, "the bounds are 4 and 8")


def test_what_was_too_little_is_not_tried_again_at_the_same_load() -> None:
    fluid = Fluid(AutoscalingOptions(down_delay=10.0), most=16).run(steady(35, 300))
    assert fluid.directions.count("down") <= 1
    assert fluid.directions[-1:] != ["down"] or fluid.history.wanted >= 4
    before = fluid.history.wanted
    assert fluid.run(steady(12, 60)).history.wanted < before


def test_staffing() -> None:
    assert queue_time(9, 10, 1) == pytest.approx(0.9)
    assert queue_time(10, 10, 1) == float("inf")
    assert [enough_for_queue_time(rate, 10, 0.2, 99) for rate in (0, 1, 6, 9, 35, 80)] == [1, 1, 1, 2, 4, 9]
    assert enough_for_queue_time(1e9, 1e-9, 0.2, 7) == 7
    assert [enough_for_in_flight(demand, 4, 9) for demand in (0, 4, 4.1, 8, 99)] == [1, 1, 2, 2, 9]


# -- what always holds --

counts = st.integers(0, 300)
targets = st.sampled_from(
    [QUEUE_TIME, IN_FLIGHT, AutoscalingOptions(target_queue_time=20, up_delay=0.0, down_delay=0.0, idle_time=0.0)]
)


@st.composite
def readings(draw: Any) -> list[Reading]:
    least = draw(st.integers(0, 4))
    most = least + draw(st.integers(0, 8)) or 1
    now, answered, found = 0.0, 0.0, list[Reading]()
    for _ in range(draw(st.integers(1, 40))):
        now, answered = now + draw(st.floats(0, 40)), answered + draw(st.floats(0, 1000))
        queue = draw(counts)
        oldest = draw(st.floats(0, 100)) if queue else 0.0
        waiting = queue + draw(st.integers(0, 3))
        states = draw(st.integers(0, 12)), draw(st.integers(0, 12))
        load = draw(st.floats(0, 100))
        found.append(
            Reading(
                now, queue, oldest, waiting, draw(counts), answered, *states, least, most, load, draw(st.booleans())
            )
        )
    return found


@given(readings(), targets, st.integers(0, 12))
@settings(max_examples=60)
def test_never_outside_the_bounds(found: list[Reading], options: AutoscalingOptions, wanted: int) -> None:
    history = History(wanted)
    for reading in found:
        decision = decide(reading, options, history)
        assert reading.least <= decision.wanted <= reading.most
        assert bool(decision.reason) == (decision.direction is not None)


@given(st.floats(0, 75), targets.filter(lambda one: one.idle_time > 0), st.integers(1, 8), st.floats(0, 30))
@settings(max_examples=40)
def test_at_a_constant_load_it_comes_to_rest(
    rate: float, options: AutoscalingOptions, workers: int, load: float
) -> None:
    fluid = Fluid(options, workers=workers, load=load).run(steady(rate, 400))
    turns = [one for one, other in zip(fluid.directions, fluid.directions[1:], strict=False) if one != other]
    assert len(turns) <= 3, fluid.decisions
    before = len(fluid.decisions)
    assert len(fluid.run(steady(rate, 100)).decisions) == before, "it has settled"


@given(st.integers(1, 200), st.integers(0, 200), st.integers(1, 6), targets)
@settings(max_examples=40)
def test_a_longer_queue_never_wants_fewer_workers(
    queue: int, more: int, workers: int, options: AutoscalingOptions
) -> None:
    def after(length: int) -> int:
        history = History(workers)
        for t in range(8):
            at = Reading(t / 2, length, length / 10, length, workers, 5.0 * t * workers, workers, 0, 1, 12, 5)
            decide(at, options, history)
        return history.wanted

    assert after(queue) <= after(queue + more)
