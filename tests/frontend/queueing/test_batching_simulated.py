"""Gains of the policies for those who wait, in simulated time: the same arrivals and service times for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_frontend.queueing.batching import BatchingPolicy, make_policy
from tests.frontend.queueing.simulation import Service, Simulation, bursts, p99, poisson

SIZE = 32
WAITS = (0.0, 0.001, 0.005, 0.02)
PERCEPTRON = Service(0.002, 0.00014, turnaround=0.0004)
TRANSFORMER = Service(0.004, 0.001, turnaround=0.0004)
CONVOLUTIONS = Service(0.0004, 0.0015, turnaround=0.0004)
Figure = Callable[[Sequence[float]], float]


def taken(policy: str, wait: float, service: Service, arrivals: Sequence[float], groups: int = 1) -> list[float]:
    simulation = Simulation(make_policy(policy, SIZE, wait), SIZE, service, groups)
    return simulation.run(arrivals)


def capacity(service: Service) -> float:
    return SIZE / (service.turnaround + service.fixed + service.per_item * SIZE)


@pytest.mark.parametrize("figure", [mean, p99])
@pytest.mark.parametrize("service", [PERCEPTRON, TRANSFORMER, CONVOLUTIONS], ids=["mlp", "transformer", "cnn"])
@pytest.mark.parametrize("load", [0.03, 0.1, 0.3, 0.6])
def test_random_arrivals_are_served_as_well_as_by_the_best_fixed_wait(
    load: float, service: Service, figure: Figure
) -> None:
    """Whichever that is: no user has to know it. Of so many p99s the best is a little below what it is without luck."""
    arrivals = poisson(load * capacity(service), 4000)
    best = min(figure(taken("fixed", wait, service, arrivals)) for wait in WAITS)
    assert figure(taken("dynamic", 0.1, service, arrivals)) <= 1.05 * best


@pytest.mark.parametrize("service", [PERCEPTRON, TRANSFORMER], ids=["mlp", "transformer"])
def test_the_first_requests_of_a_burst_wait_for_the_others(service: Service) -> None:
    """Where a batch costs much whatever its size, that is better for all of them than never to wait."""
    arrivals = bursts(0.05 * capacity(service), 4000, size=8, gap=service.fixed / 20)
    never, dynamic = (mean(taken(*one, service, arrivals)) for one in (("fixed", 0.0), ("dynamic", 0.1)))
    assert dynamic < 0.97 * never


def test_where_batches_gain_nothing_no_request_waits_for_one() -> None:
    service = Service(0.0, 0.002)
    arrivals = poisson(0.3 * capacity(service), 2000)
    assert taken("dynamic", 0.1, service, arrivals) == taken("fixed", 0.0, service, arrivals)


def test_a_second_group_is_not_left_idle() -> None:
    arrivals = poisson(0.03 * capacity(PERCEPTRON), 2000)
    never, dynamic = (p99(taken(*one, PERCEPTRON, arrivals, groups=2)) for one in (("fixed", 0.0), ("dynamic", 0.1)))
    assert dynamic <= 1.01 * never


@settings(max_examples=50)
@given(
    policy=st.sampled_from(["fixed", "dynamic"]),
    wait=st.floats(0, 0.2),
    size=st.integers(1, 8),
    groups=st.integers(1, 3),
    gaps=st.lists(st.sampled_from([0.0, 0.0001, 0.003, 0.05, 1.0]), min_size=1, max_size=60),
    fixed=st.sampled_from([0.0, 0.001, 0.02]),
)
def test_each_request_is_served_once_and_none_waits_beside_an_idle_group_beyond_the_delay(
    policy: str, wait: float, size: int, groups: int, gaps: list[float], fixed: float
) -> None:
    arrivals = [sum(gaps[:n]) for n in range(len(gaps))]
    made: BatchingPolicy = make_policy(policy, size, wait)
    simulation = Simulation(made, size, Service(fixed, 0.001), groups)
    assert len(simulation.run(arrivals)) == len(arrivals)
    assert sum(simulation.sizes) == len(arrivals)
    assert max(simulation.sizes) <= size
    assert simulation.longest_idle_wait <= wait + 1e-6
