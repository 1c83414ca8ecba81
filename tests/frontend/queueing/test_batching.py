"""Batching policies: what they wait for, and how long at most."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.queueing.batching import (
    ArrivalRate,
    BatchingPolicy,
    DynamicPolicy,
    FixedPolicy,
    LatencyModel,
    make_policy,
)

SECONDS = st.floats(0, 1e4)


def dynamic(*, fixed: float = 0.0, per_item: float = 0.001, gap: float = math.inf, delay: float = 0.1) -> DynamicPolicy:
    """Batches of at most 8, by a policy that has learnt these figures. Now is 0."""
    policy = DynamicPolicy(8, delay)
    for size in (1, 2, 4, 8) * 10:
        policy.finished(size, fixed + per_item * size)
    if gap < math.inf:
        for n in range(-20, 1):
            policy.arrived(n * gap)
    return policy


@pytest.mark.parametrize(("fixed", "per_item"), [(0.02, 0.001), (0.0, 0.005), (0.1, 0.0), (5.0, 1.0)])
def test_the_latency_model_recovers_fixed_and_per_item_cost(fixed: float, per_item: float) -> None:
    model = LatencyModel()
    for size in (1, 3, 8, 2, 5) * 5:
        model.observe(size, fixed + per_item * size)
    assert model.fixed == pytest.approx(fixed, abs=1e-6)


def test_the_latency_model_forgets() -> None:
    model = LatencyModel()
    for cost in (1.0, 0.01):
        for size in (1, 2, 4) * 200:
            model.observe(size, cost)
    assert model.fixed == pytest.approx(0.01, rel=0.01)
    assert model.mean == pytest.approx(0.01, rel=0.01)


def test_nothing_is_claimed_of_a_fixed_cost_while_sizes_do_not_vary() -> None:
    model = LatencyModel()
    assert model.fixed == 0
    assert model.mean == math.inf
    for _ in range(50):
        model.observe(4, 2.0)
    assert model.fixed == 0
    assert model.mean == pytest.approx(2.0)


def test_larger_batches_that_are_faster_give_no_negative_slope() -> None:
    model = LatencyModel()
    for size, seconds in ((1, 2.0), (8, 1.0)) * 20:
        model.observe(size, seconds)
    assert model.fixed == pytest.approx(1.5, rel=0.05)  # the mean: no slope at all


def test_arrival_rate() -> None:
    rate = ArrivalRate()
    assert rate.gap == math.inf
    rate.arrived(5.0)
    assert rate.gap == math.inf
    for n in range(100):
        rate.arrived(6.0 + n)
    assert rate.gap == pytest.approx(1.0)


def test_a_lone_request_does_not_wait_before_anything_is_learnt() -> None:
    policy = DynamicPolicy(8, 0.1)
    policy.arrived(0.0)
    assert policy.wait(0.0, 1, 0.0, 1) == 0


def test_a_lone_request_does_not_wait_where_nothing_is_to_gain() -> None:
    assert dynamic(fixed=0.0, gap=0.001).wait(0.0, 1, 0.0, 1) == 0


def test_a_lone_request_does_not_wait_where_the_next_is_far() -> None:
    assert dynamic(fixed=0.02, gap=0.03).wait(0.0, 1, 0.0, 1) == 0


def test_waiting_pays_where_a_batch_of_its_own_costs_more_than_the_next_arrival() -> None:
    assert 0 < dynamic(fixed=0.02, gap=0.005).wait(0.0, 1, 0.0, 1) <= 0.1


def test_no_request_waits_for_a_next_one_that_is_overdue() -> None:
    """A burst taught that the next comes soon; when it does not, the last of them does not pay max_delay."""
    policy = dynamic(fixed=1.0, gap=0.01, delay=60.0)
    waits = policy.wait(0.0, 1, 0.0, 1)
    assert 0 < waits < 0.1
    assert policy.wait(waits, 1, 0.0, 1) == 0
    assert policy.wait(5.0, 1, 0.0, 1) == 0


def test_the_more_wait_the_less_it_pays() -> None:
    policy = dynamic(fixed=0.02, gap=0.0025)
    assert policy.wait(0.0, 3, 0.0, 1) > 0
    assert policy.wait(0.0, 4, 0.0, 1) == 0  # four lose 2.5 ms each: half of what the batch costs


def test_no_request_waits_while_another_group_is_idle() -> None:
    """The next request goes there, and not behind this batch."""
    policy = dynamic(fixed=0.02, gap=0.001)
    assert policy.wait(0.0, 1, 0.0, 1) > 0
    assert policy.wait(0.0, 1, 0.0, 2) == 0


def test_a_burst_is_known_by_the_gaps_within_it() -> None:
    """However long the pause before it was."""
    policy = dynamic(fixed=0.02, gap=0.001)
    policy.arrived(3600.0)
    assert 0 < policy.wait(3600.0, 1, 3600.0, 1) < 0.02


@pytest.mark.parametrize("policy", [dynamic(fixed=1.0, gap=0.001), FixedPolicy(8, 0.1)])
def test_a_full_batch_leaves_now(policy: BatchingPolicy) -> None:
    assert policy.wait(0.0, 7, 0.0, 1) > 0
    assert policy.wait(0.0, 8, 0.0, 1) == 0
    assert policy.wait(0.0, 20, 0.0, 1) == 0


@pytest.mark.parametrize("policy", [dynamic(fixed=1.0, gap=0.2), FixedPolicy(8, 0.1)])
def test_max_batch_delay_is_counted_from_the_oldest(policy: BatchingPolicy) -> None:
    assert policy.wait(0.0, 1, 0.0, 1) == pytest.approx(0.1)
    assert policy.wait(0.06, 1, 0.0, 1) == pytest.approx(0.04)
    assert policy.wait(0.1, 1, 0.0, 1) == 0
    assert policy.wait(9.0, 1, 0.0, 1) == 0


def test_the_fixed_policy_waits_whatever_it_costs() -> None:
    policy = FixedPolicy(8, 0.1)
    policy.arrived(0.0)
    policy.finished(1, 0.0)
    assert policy.wait(0.0, 1, 0.0, 1) == pytest.approx(0.1)
    assert policy.typical_seconds == math.inf


def test_typical_seconds() -> None:
    policy = DynamicPolicy(8, 0.1)
    assert policy.typical_seconds == math.inf
    policy.finished(1, 0.25)
    assert policy.typical_seconds == 0.25


def test_policies_by_name() -> None:
    assert isinstance(make_policy("fixed", 8, 0.1), FixedPolicy)
    assert isinstance(make_policy("dynamic", 8, 0.1), DynamicPolicy)


@given(
    name=st.sampled_from(["fixed", "dynamic"]),
    batch_size=st.integers(1, 64),
    delay=st.floats(0, 10),
    arrivals=st.lists(SECONDS, max_size=20).map(sorted),
    batches=st.lists(st.tuples(st.integers(1, 64), SECONDS), max_size=20),
    waiting=st.integers(1, 100),
    oldest=SECONDS,
    waited=SECONDS,
    idle=st.integers(1, 3),
)
def test_a_wait_is_never_negative_and_never_beyond_the_delay(
    name: str,
    batch_size: int,
    delay: float,
    arrivals: list[float],
    batches: list[tuple[int, float]],
    waiting: int,
    oldest: float,
    waited: float,
    idle: int,
) -> None:
    policy = make_policy(name, batch_size, delay)
    for moment in arrivals:
        policy.arrived(moment)
    for size, seconds in batches:
        policy.finished(size, seconds)
    wait = policy.wait(oldest + waited, waiting, oldest, idle)
    assert 0 <= wait <= max(delay - waited, 0) + 1e-6
    if waiting >= batch_size:
        assert wait == 0
    assert policy.typical_seconds >= 0


def test_after_a_burst_no_request_waits_before_a_batch_has_shown_what_it_costs() -> None:
    policy = DynamicPolicy(8, 0.1)
    for n in range(20):
        policy.arrived(n * 0.001)
    assert policy.wait(0.02, 1, 0.02, 1) == 0


def test_batches_of_two_learn_too() -> None:
    policy = DynamicPolicy(2, 0.1)
    for size, seconds in ((1, 0.021), (2, 0.022)) * 20:
        policy.finished(size, seconds)
    for n in range(20):
        policy.arrived(n * 0.001)
    assert policy.wait(0.019, 1, 0.019, 1) > 0


def test_several_equal_batches_count_as_one_after_the_other() -> None:
    once, each = LatencyModel(), LatencyModel()
    for size, seconds, count in ((1, 0.001, 3), (4, 0.002, 1), (2, 0.004, 7)):
        once.observe(size, seconds, count)
        for _ in range(count):
            each.observe(size, seconds)
    assert [once.mean, once.fixed] == pytest.approx([each.mean, each.fixed])
