"""The simulation of rules for the number of workers."""

from __future__ import annotations

import pytest

from benchmarks.autoscaling.arrivals import HOUR, Pattern, day, patterns
from benchmarks.autoscaling.autoscaling import OURS, PEAK, RAY, above, missed, p99, played
from benchmarks.autoscaling.rules import Fixed, RayServe, Rule
from benchmarks.autoscaling.world import Outcome, World
from msx_frontend.models.autoscaling.reading import Reading


def one_worker(arrivals: list[float], rule: Rule, seconds: float) -> Outcome:
    return World(arrivals, rule, workers=1, service=0.2, load=5, target=0.2, needed=lambda now: 1).run(seconds)


def test_arrivals_are_the_same_each_time() -> None:
    first, again = (pattern.arrivals() for pattern in (patterns(0.1)[2], patterns(0.1)[2]))
    assert first == again
    assert first == sorted(first)
    steady = Pattern("steady", 1000, lambda now: 5.0, burst=100, every=100)
    assert len(steady.arrivals()) == pytest.approx(5000 + 900, rel=0.05)
    assert steady.mean_with_bursts == 6.0


def test_a_day_is_quiet_at_night_and_has_a_spike() -> None:
    assert day(3 * HOUR) < 4 < day(15 * HOUR)
    assert day(11 * HOUR + 60) > 2 * day(10 * HOUR)


def test_a_fixed_number_of_workers() -> None:
    outcome = one_worker([1.0, 1.0, 1.0, 50.0], Fixed(1), 60)
    assert outcome.waits[0] == outcome.waits[3] == 0
    assert 0 < outcome.waits[1] < outcome.waits[2]
    assert (outcome.worker_seconds, outcome.above, outcome.decisions) == (60, 0, 0)
    assert one_worker([], Fixed(3), 60).above == 2 * 60, "workers that load are paid for"


def test_ray_serves_rule_obeys_its_delays_and_factors() -> None:
    def after(seconds: int, demand: int, replicas: int, **settings: float) -> int:
        rule = RayServe(**settings)
        for now in range(seconds):
            rule.wanted(Reading(float(now), waiting=demand, ready=replicas, least=1, most=99))
        return rule.wanted(Reading(float(seconds), waiting=demand, ready=replicas, least=1, most=99))

    assert after(29, 12, 2) == 2
    assert after(31, 12, 2) == 6
    assert after(31, 12, 2, up_factor=0.5) == 4
    assert after(599, 1, 4) == 4
    assert after(601, 1, 4) == 1


def test_ours_costs_less_than_the_peak_and_misses_less_than_ray_serves() -> None:
    pattern = patterns(0.1, 0.5)[0]
    found = played(pattern, 0.2, 20.0)
    assert above(found[OURS]) < above(found[PEAK])
    assert missed(pattern, found[OURS]) < missed(pattern, found[RAY])
    assert p99(found[OURS]) < p99(found[RAY])
