from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from msx_frontend.deferred import fair_queue
from msx_frontend.deferred.entry import Entry
from msx_frontend.deferred.fair_queue import FairQueue
from msx_frontend.deferred.records import JobHead


def waiting(turns: FairQueue[Entry], owner: str, count: int) -> list[Entry]:
    entries = [Entry(f"{owner}{number}", owner, 0.0, JobHead("/p")) for number in range(count)]
    for entry in entries:
        turns.add(entry)
    return entries


def taken(turns: FairQueue[Entry], count: int) -> list[str]:
    return [entry.id for _ in range(count) if (entry := turns.take()) is not None]


def test_owners_take_turns() -> None:
    turns = FairQueue[Entry]()
    waiting(turns, "a", 10_000)
    assert taken(turns, 2) == ["a0", "a1"]
    waiting(turns, "b", 2)
    waiting(turns, "c", 1)
    assert taken(turns, 7) == ["a2", "b0", "c0", "a3", "b1", "a4", "a5"]


def test_a_place_counts_the_turns_of_others() -> None:
    turns = FairQueue[Entry]()
    ann, bob = waiting(turns, "a", 100), waiting(turns, "b", 2)
    assert [turns.place(one) for one in bob] == [1, 3]
    assert [turns.place(one) for one in ann[:4]] == [1, 3, 4, 5]
    turns.drop(ann[0])
    assert taken(turns, 3) == ["a1", "b0", "a2"]
    assert turns.place(bob[1]) == 1
    assert turns.place(bob[0]) == 0


def test_places_are_those_of_a_count_of_all_lanes() -> None:
    turns, chance = FairQueue[Entry](), random.Random(1)
    entries = [one for lane in range(20) for one in waiting(turns, f"{lane}", chance.randrange(1, 30))]
    for dropped in chance.sample(entries, 50):
        turns.drop(dropped)
        one = chance.choice([one for lane in turns._lanes.values() for one in lane.waiting])
        own = turns._lanes[one.lane]
        before = one.number - own.taken - 1
        others = sum(min(len(lane.waiting), before + 1) for lane in turns._lanes.values() if lane is not own)
        assert turns.place(one) == before + others


def test_lanes_are_counted_once_for_a_whole_list(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[None] = []

    class CountedSizes(fair_queue.LaneSizes):
        def __init__(self, sizes: Iterable[int]) -> None:
            counted.append(None)
            super().__init__(sizes)

    monkeypatch.setattr(fair_queue, "LaneSizes", CountedSizes)
    turns = FairQueue[Entry]()
    entries = [one for lane in range(5) for one in waiting(turns, f"{lane}", 5)]
    assert [turns.place(one) for one in entries[:5]] == [4, 9, 14, 19, 24]
    assert len(counted) == 1
    turns.take()
    turns.place(entries[-1])
    assert len(counted) == 2


def test_dropped_jobs_leave_nothing() -> None:
    turns = FairQueue[Entry]()
    entries = waiting(turns, "a", 100)
    for one in (*entries, entries[0], Entry("x", "unknown", 0.0, JobHead("/p"))):
        turns.drop(one)
    assert turns.take() is None
    assert not turns._lanes


def test_lanes_that_are_busy_wait() -> None:
    turns = FairQueue[Entry]()
    waiting(turns, "a", 2)
    (bob,) = waiting(turns, "b", 1)
    assert turns.take(["a"]) is bob
    assert turns.take(["a"]) is None
    assert taken(turns, 2) == ["a0", "a1"]
