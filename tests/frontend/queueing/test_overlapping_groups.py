"""Batches that are sent ahead to groups that overlap. The groups are fakes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from msx_core.service_errors import ServiceUnavailable
from msx_frontend.job import method_kind
from msx_frontend.queueing.ahead import JOINS_FROM, MOST_AHEAD, ONLY_BELOW, PREFETCH_BELOW
from tests.frontend.jobs import make_job
from tests.frontend.queueing.test_dispatcher import Bench, FakeGroup, on_a_loop

UNKNOWN = math.inf


def bench_of(seconds: float, groups: int, **config: Any) -> Bench:
    """Batches of one take so long; they overlap."""
    fakes = [FakeGroup(batch_size=1) for _ in range(groups)]
    for fake in fakes:
        fake.overlaps = True
    bench = Bench(*fakes, **{"batch_size": 1, **config})
    if seconds != UNKNOWN:
        bench.learn(seconds)
    return bench


def wait(bench: Bench, requests: int, **options: Any) -> None:
    """So many requests come at once."""
    for number in range(requests):
        bench.dispatcher.submit(make_job(str(number), **options))
    bench.dispatcher.pump()


@on_a_loop
@pytest.mark.parametrize(
    ("seconds", "groups", "waiting", "held"),
    [
        (0.0, 1, 99, [2 + MOST_AHEAD]),
        (0.0003, 1, 99, [1 + 3 + 1]),
        (PREFETCH_BELOW * 0.99, 1, 99, [3]),
        (PREFETCH_BELOW * 1.01, 1, 99, [3]),
        (ONLY_BELOW * 0.99, 1, 99, [3]),
        (ONLY_BELOW * 1.01, 1, 99, [2]),
        (ONLY_BELOW * 100, 1, 99, [2]),
        (UNKNOWN, 1, 99, [2]),
        (PREFETCH_BELOW * 0.99, 2, 99, [3, 3]),
        (PREFETCH_BELOW * 1.01, 2, 99, [2, 2]),
        (ONLY_BELOW * 100, 2, 2 + 1, [1, 1]),
        (ONLY_BELOW * 100, 2, 2 + 2, [2, 1]),
        (ONLY_BELOW * 100, 2, 2 + 3, [2, 2]),
        (ONLY_BELOW * 100, 3, 3 + 2, [1, 1, 1]),
        (UNKNOWN, 2, 2 + 1, [1, 1]),
        (UNKNOWN, 2, 99, [2, 2]),
    ],
)
def test_so_many_batches_a_group_holds(seconds: float, groups: int, waiting: int, held: list[int]) -> None:
    """One more where they are short. A long one only if there is work for each group: no request is held up behind it
    while another group becomes free."""
    bench = bench_of(seconds, groups)
    wait(bench, waiting)
    assert [len(group.batches) for group in bench.groups] == held


@on_a_loop
@pytest.mark.parametrize(
    ("seconds", "groups", "waiting", "held"),
    [
        (PREFETCH_BELOW * 0.99, 1, 99, [3]),
        (PREFETCH_BELOW * 1.01, 1, 1 + 1, [2]),
        (PREFETCH_BELOW * 1.01, 1, 1 + 2, [3]),
        (ONLY_BELOW * 100, 1, 1 + 1, [1]),
        (ONLY_BELOW * 100, 1, 1 + 2, [2]),
        (ONLY_BELOW * 100, 2, 2 + 2, [1, 1]),
        (ONLY_BELOW * 100, 2, 2 + 3, [2, 1]),
    ],
)
def test_one_batch_more_has_to_wait_where_the_load_starts_workers(
    seconds: float, groups: int, waiting: int, held: list[int]
) -> None:
    """Another worker could take it, and is started only for what waits in the queue."""
    bench = bench_of(seconds, groups)
    bench.dispatcher.batched.autoscaled = True
    wait(bench, waiting)
    assert [len(group.batches) for group in bench.groups] == held


@on_a_loop
def test_a_batch_that_is_not_full_is_not_sent_ahead() -> None:
    group = FakeGroup()
    group.overlaps = True
    bench = Bench(group)
    bench.learn(ONLY_BELOW * 2)
    bench.submit("x", "a", "b", "c")
    assert group.ids == [["x"]]
    bench.submit("d")
    assert group.ids == [["x"], list("abcd")]


@on_a_loop
def test_requests_join_the_batches_of_the_only_group_as_they_come() -> None:
    group = FakeGroup()
    group.overlaps = True
    bench = Bench(group)
    bench.learn(JOINS_FROM)
    bench.submit("x", "a", "b")
    assert (group.ids, group.joins) == ([["x"], ["a"], ["b"]], [True] * 3)


@on_a_loop
def test_a_full_batch_is_sent_ahead_by_the_fixed_policy_too() -> None:
    """It leaves the queue when it is full."""
    bench = bench_of(UNKNOWN, 1, batching_policy="fixed")
    wait(bench, 3)
    assert bench.groups[0].ids == [["0"], ["1"]]


@on_a_loop
def test_batches_of_methods_do_not_overlap() -> None:
    bench = bench_of(ONLY_BELOW * 2, 1)
    wait(bench, 3, kind=method_kind("embed"))
    assert bench.groups[0].ids == [["0"]]
    bench = bench_of(ONLY_BELOW * 2, 1)
    bench.groups[0].seconds[method_kind("embed")] = ONLY_BELOW
    wait(bench, 3, kind=method_kind("embed"))
    assert bench.groups[0].ids == [["0"], ["1"]]


@on_a_loop
def test_nothing_is_sent_ahead_with_tickets() -> None:
    bench = bench_of(PREFETCH_BELOW, 1, use_job_ticket=True)
    wait(bench, 1)
    with pytest.raises(ServiceUnavailable, match="no job ticket"):
        bench.submit("a")
    bench.dispatcher.put_back([make_job("returned")])
    assert bench.groups[0].ids == [["0"]]
