"""Which rank the others wait for, by the collectives that each rank has begun."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from msx_frontend.workers.stragglers import Stragglers

LIMIT = 10.0


def told(*counts: Mapping[str, int]) -> Stragglers:
    """Stragglers after each rank's report, rank 0 first, just now."""
    stragglers = Stragglers(LIMIT)
    for rank, of_rank in enumerate(counts):
        stragglers.counted(rank, of_rank, time.monotonic())
    return stragglers


def later() -> float:
    return time.monotonic() + LIMIT + 1


def test_equal_counts() -> None:
    stragglers = told({"all_reduce[0,1]": 3}, {"all_reduce[0,1]": 3})
    assert stragglers.overdue(later()) == ""
    assert stragglers.words() == ""


def test_one_rank_is_missing() -> None:
    stragglers = told({"all_reduce[0,1]": 3}, {"all_reduce[0,1]": 2})
    assert stragglers.overdue(time.monotonic()) == ""
    words = "Rank 1 did not come to all_reduce[0,1] within rankSkewTimeout (10 s) after rank 0."
    assert stragglers.overdue(later()) == words
    assert stragglers.words() == "rank 0 waits in all_reduce[0,1] for rank 1"


def test_a_rank_that_has_never_counted_any() -> None:
    stragglers = told({"all_gather[0,1]": 1})
    assert stragglers.overdue(later()).startswith("Rank 1 did not come to all_gather[0,1]")


def test_several_are_missing() -> None:
    every = "all_reduce[0,1,2,3]"
    stragglers = told({every: 5}, {every: 4}, {every: 5}, {every: 4})
    words = "Ranks 1, 3 did not come to all_reduce[0,1,2,3] within rankSkewTimeout (10 s) after ranks 0, 2."
    assert stragglers.overdue(later()) == words
    assert stragglers.words() == "ranks 0, 2 wait in all_reduce[0,1,2,3] for ranks 1, 3"


def test_the_clock_starts_again_when_any_rank_goes_on() -> None:
    stragglers = told({"all_reduce[0,1]": 3}, {"all_reduce[0,1]": 2})
    stragglers.counted(1, {"all_reduce[0,1]": 2, "all_reduce[1,2]": 1}, later())
    assert stragglers.overdue(later()) == ""
    stragglers.counted(0, {"all_reduce[0,1]": 3}, later())  # the same again is not news
    assert stragglers.overdue(later() + LIMIT)


@pytest.mark.parametrize("kind", ["send", "broadcast"])
def test_a_rank_may_wait_long_for_what_another_computes_first(kind: str) -> None:
    """Stage 1 of a pipeline is in the middle of its pass. Only responseTimeout tells which rank waited for which."""
    stragglers = told({f"{kind}[1,0]": 4}, {f"{kind}[1,0]": 3})
    assert stragglers.overdue(later()) == ""
    assert stragglers.words() == f"rank 0 waits in {kind}[1,0] for rank 1"
