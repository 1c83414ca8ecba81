"""Which rank is to blame, by the reports of all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.workers import lockstep as module
from msx_frontend.workers.lockstep import Lockstep
from msx_protocol import CallDone
from tests.loops import run


class Bench:
    def __init__(self, ranks: int = 2, skew: float = 60.0) -> None:
        self.verdicts: list[str] = []
        self.told = asyncio.Event()
        self.lockstep = Lockstep(ranks, skew, self._diverged)
        self.lockstep.warming_up = False

    def _diverged(self, sentence: str) -> None:
        self.verdicts.append(sentence)
        self.told.set()

    def report(self, rank: int, call: int = 1, **members: Any) -> None:
        values: dict[str, Any] = {"requests": [1], "steps": 0, "collectives": {}, **members}
        self.lockstep.reported(rank, CallDone(call, **values))


def on(test: Callable[[Bench], Coroutine[Any, Any, None]], **options: Any) -> list[str]:
    async def call() -> list[str]:
        bench = Bench(**options)
        await test(bench)
        return bench.verdicts

    return run(call())


def verdict(*reports: dict[str, Any]) -> list[str]:
    """Verdict on one call that all ranks have ended, rank 0 first."""

    async def test(bench: Bench) -> None:
        for rank, members in enumerate(reports):
            bench.report(rank, **members)
        assert not bench.lockstep.busy

    return on(test, ranks=len(reports))


def test_equal_reports() -> None:
    same = {"steps": 3, "requests": [1, 2], "collectives": {"all_reduce[0,1]": 7}}
    assert verdict(same, same) == []
    assert verdict({"error": "ValueError: of rank 0"}, {"error": "OtherError: of rank 1"}) == []


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ([{"steps": 4}, {"steps": 5}], "Rank 1 took 5 steps of a call in which rank 0 took 4."),
        ([{}, {}, {"requests": [2]}], "Rank 2 worked on other requests than rank 0."),
        ([{"error": "E: x"}, {}, {}], "Rank 0 failed while ranks 1, 2 did not: E: x"),
        ([{}, {"error": "E: x"}], "Rank 1 failed while rank 0 did not: E: x"),
        (
            [{"collectives": {"all_reduce[0,1]": 3}}, {"collectives": {}}],
            "The ranks do not agree on all_reduce[0,1]: rank 0 made 3, rank 1 made 0.",
        ),
        (
            [{"collectives": {"send[0,1]": 1}, "error": "E"}, {"collectives": {"send[0,1]": 2}, "error": "E"}],
            "The ranks do not agree on send[0,1]: rank 0 made 1, rank 1 made 2.",
        ),
    ],
)
def test_reports_that_differ(reports: list[dict[str, Any]], words: str) -> None:
    assert verdict(*reports) == [words]


def test_ranks_of_other_groups_need_not_count_the_same() -> None:
    one, two = {"all_reduce[0,1]": 3}, {"all_reduce[2,3]": 5}
    assert verdict({"collectives": one}, {"collectives": one}, {"collectives": two}, {"collectives": two}) == []


def test_errors_in_the_middle_of_a_stream_need_not_come_at_the_same_step() -> None:
    assert verdict({"steps": 2, "error": "E"}, {"steps": 3, "error": "E"}) == []


def test_a_rank_that_does_not_end_its_call() -> None:
    async def test(bench: Bench) -> None:
        bench.report(0)
        bench.report(2)
        await bench.told.wait()

    words = "Rank 1 did not end a call within rankSkewTimeout (0.05 s) after ranks 0, 2."
    assert on(test, ranks=3, skew=0.05) == [words]


def test_the_first_call_that_is_not_ended_counts() -> None:
    """Rank 0 may be far ahead."""

    async def test(bench: Bench) -> None:
        for call in (1, 2, 3):
            bench.report(0, call)
        await bench.told.wait()
        await asyncio.sleep(0.1)

    assert len(on(test, skew=0.05)) == 1


def test_one_that_failed_alone_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ERROR_PATIENCE", 0.05)

    async def test(bench: Bench) -> None:
        bench.report(1, error="E: x")
        assert bench.lockstep.in_doubt
        await bench.told.wait()

    assert on(test, skew=600) == ["Rank 1 failed while rank 0 did not: E: x"]


def test_doubt_ends_with_the_last_report() -> None:
    async def test(bench: Bench) -> None:
        bench.report(0, error="E")
        bench.report(0, call=2)
        assert bench.lockstep.in_doubt
        bench.report(1, error="E")
        assert not bench.lockstep.in_doubt
        assert bench.lockstep.busy
        bench.report(1, call=2)
        assert not bench.lockstep.busy

    assert on(test) == []


@pytest.mark.parametrize("error", ["", "E: x"])
def test_in_warm_up_only_errors_are_urgent(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank may compile for long, and the others have nothing to do meanwhile."""
    monkeypatch.setattr(module, "ERROR_PATIENCE", 0.02)

    async def test(bench: Bench) -> None:
        bench.lockstep.warming_up = True
        bench.report(0, error=error)
        await asyncio.sleep(0.1)

    assert on(test, skew=0.02) == (["Rank 0 failed while rank 1 did not: E: x"] if error else [])


def test_nothing_is_said_after_the_end() -> None:
    async def test(bench: Bench) -> None:
        bench.report(0)
        bench.lockstep.close()
        await asyncio.sleep(0.05)

    assert on(test, skew=0.01) == []


@given(st.permutations([(rank, call) for rank in range(3) for call in range(1, 4)]))
def test_the_order_of_equal_reports_does_not_matter(order: list[tuple[int, int]]) -> None:
    async def test(bench: Bench) -> None:
        for rank, call in order:
            bench.report(rank, call)
        assert not bench.lockstep.busy

    assert on(test, ranks=3) == []


def test_calls_that_began_for_another_server_do_not_count() -> None:
    async def test(bench: Bench) -> None:
        bench.report(1, call=4)
        bench.lockstep.forget(4)
        assert not bench.lockstep.busy
        bench.report(1, call=3)
        bench.report(0, call=5, steps=1)
        bench.report(1, call=5, steps=2)

    assert on(test) == ["Rank 1 took 2 steps of a call in which rank 0 took 1."]
