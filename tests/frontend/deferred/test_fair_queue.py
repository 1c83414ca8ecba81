from __future__ import annotations

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
