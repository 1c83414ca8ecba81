"""Reports of rank 0 about calls that overlap on it, and run one after the other on the other ranks."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from msx_backend.parallel.reports import COLLECTIVES
from msx_protocol import CallDone, PlanMessage
from tests.backend.parallel.test_leader import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(1)
    yield made
    made.close()


class Counting:
    """In place of the SDK's collectives."""

    def __init__(self) -> None:
        self.made = {"all_reduce[0,1]": 5}

    def counts(self) -> dict[str, int]:
        return self.made

    def make(self, name: str) -> None:
        self.made[name] = self.made.get(name, 0) + 1


@pytest.fixture
def collectives(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setitem(sys.modules, COLLECTIVES, counting)
    return counting


def reported(bench: Bench) -> list[tuple[int, dict[str, int], str]]:
    return [(it.call, it.collectives, it.error) for it, _ in bench.rank.told() if isinstance(it, CallDone)]


def test_a_call_that_is_led(bench: Bench, collectives: Counting) -> None:
    with bench.leader.tell(b"do it"):
        assert [bench.heard(rank) for rank in (1, 2)] == [[(PlanMessage(1), b"do it")]] * 2
        collectives.make("send[0,1]")
    assert reported(bench) == [(1, {"all_reduce[0,1]": 5, "send[0,1]": 1}, "")]


def test_parts_of_two_calls_take_turns(bench: Bench, collectives: Counting) -> None:
    first = bench.leader.tell(b"a")
    with first.part():
        collectives.make("send[0,1]")
    second = bench.leader.tell(b"b")
    with second.part():
        collectives.make("send[0,1]")
    with first.part():
        collectives.make("send[1,0]")
    first.end()
    with second.part():
        collectives.make("send[1,0]")
    second.end()
    before = {"all_reduce[0,1]": 5}
    assert reported(bench) == [
        (1, before | {"send[0,1]": 1, "send[1,0]": 1}, ""),
        (2, before | {"send[0,1]": 2, "send[1,0]": 2}, ""),
    ]


def test_what_rank_0_raises_is_reported_and_raised(bench: Bench, collectives: Counting) -> None:
    def lead() -> None:
        with bench.leader.tell(b"a"):
            collectives.make("send[0,1]")
            raise ValueError("not so")

    with pytest.raises(ValueError, match="not so"):
        lead()
    assert reported(bench) == [(1, {"all_reduce[0,1]": 5, "send[0,1]": 1}, "ValueError: not so")]
