"""When a line has a place beside the requests of clients."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from msx_frontend.batches.line_share import LONGEST, MOST_HELD, OF_CROWD, QUIET_AT_MOST, QUIET_LINES
from msx_frontend.batches.line_waits import WANTED
from msx_frontend.batches.rooms import LinePlace, LineTurns
from tests.frontend.batches.serving import FakeRoom

SECONDS = 0.02
CASES = [
    (FakeRoom(places=8), 4),
    (FakeRoom(places=8, taken=3), 1),
    (FakeRoom(places=8, taken=4), 0),
    (FakeRoom(places=8, is_wanted=True), 0),
    (FakeRoom(places=3), 1),
    (FakeRoom(places=1), 1),
    (FakeRoom(places=0), 1),
]


class Bench:
    """A model with lines of one owner, whose lines take SECONDS."""

    def __init__(self, room: FakeRoom, share: float = 0.5) -> None:
        self.now, self.room = 1000.0, room
        self.turns = LineTurns(room, share, lambda: self.now)
        self.woken: list[str] = []

    def take(self, owner: str = "", batch: str = "") -> LinePlace | None:
        return self.turns.take({}, "m", owner, batch, lambda: self.woken.append(batch or owner))

    def fill(self) -> list[LinePlace]:
        """As many lines as may run."""
        found: list[LinePlace] = []
        while len(found) < 100 and (place := self.take()) is not None:
            found.append(place)
        return found

    def end(self, places: list[LinePlace], held: int = 0, seconds: float = SECONDS) -> None:
        """The lines end; a client waits for each of the first `held` places."""
        self.now += seconds
        for number, place in enumerate(places):
            self.room.is_held = number < held
            self.room.answered += 1
            self.turns.give_back(place)
        self.room.is_held = False

    def clients(self, count: int) -> None:
        """So many requests of clients are answered."""
        self.room.answered += count


@pytest.mark.parametrize(("room", "lines"), CASES)
def test_lines_fill_a_share(room: FakeRoom, lines: int) -> None:
    others, room = room.taken, replace(room)
    turns, taken = LineTurns(room, 0.5, lambda: 0.0), 0
    while taken < 10 and turns.take({}, "m", "") is not None:
        taken += 1
        room.taken = others + taken
    assert taken == lines


def test_a_place_is_given_back() -> None:
    bench = Bench(FakeRoom(places=2))
    place = bench.take()
    assert place is not None
    assert bench.take() is None
    assert bench.turns.running == 1
    bench.turns.give_back(place)
    assert bench.turns.running == 0
    assert bench.take() is not None


def test_an_idle_server_runs_lines_without_a_pause() -> None:
    bench = Bench(FakeRoom(places=1))
    for _ in range(1000):
        (place,) = bench.fill()
        bench.end([place])


@pytest.mark.parametrize(("places", "most"), [(1, 1), (4, 2), (16, 8)])
def test_a_client_that_waits_for_a_line_costs_lines_a_place(places: int, most: int) -> None:
    bench = Bench(FakeRoom(places=places))
    running = bench.fill()
    assert len(running) == most
    bench.end(running, held=1)
    running = bench.fill()
    assert len(running) == most - 1
    bench.end(running)
    bench.clients(round(1 / MOST_HELD / most) - 1)
    running = bench.fill()
    assert len(running) == most - 1
    bench.end(running)
    bench.clients(1)
    assert len(bench.fill()) == most


def test_few_clients_wait_for_lines_where_one_comes_behind_each_line() -> None:
    """Whatever the only place of the model does."""
    bench, held = Bench(FakeRoom(places=1)), 0
    for _ in range(2000):
        if running := bench.fill():
            held += 1
            bench.end(running, held=1)
        bench.clients(1)
    assert held == pytest.approx(2000 * MOST_HELD, abs=1)


@pytest.mark.parametrize(
    ("seconds", "quiet"), [(SECONDS, QUIET_LINES * SECONDS), (60.0, QUIET_AT_MOST)], ids=["short", "long"]
)
def test_a_quiet_time_gives_lines_all_back(seconds: float, quiet: float) -> None:
    bench = Bench(FakeRoom(places=1))
    bench.end(bench.fill(), held=1, seconds=seconds)
    bench.clients(1)
    assert bench.fill() == []
    bench.now += quiet * 0.99
    assert bench.fill() == []
    bench.now += quiet * 0.02
    assert len(bench.fill()) == 1


@pytest.mark.parametrize("places", [1, 8])
def test_few_clients_do_not_keep_lines_from_running(places: int) -> None:
    """One that asks each minute, as a probe does, and finds a line wherever it comes."""
    bench, begun = Bench(FakeRoom(places=places), share=0.5), 0
    for _ in range(24 * 60):
        running = bench.fill()
        begun += len(running)
        bench.clients(1)
        bench.end(running, held=len(running), seconds=2.0)
        bench.now += 58.0
    assert begun >= 24 * 3600 / LONGEST * 0.9


def test_clients_that_wait_for_each_other_let_more_wait_for_lines() -> None:
    bench = Bench(FakeRoom(places=1))
    bench.end(bench.fill(), held=1)
    bench.room.taken = 1
    for _ in range(10_000):
        bench.now += SECONDS
        assert bench.fill() == []
    bench.room.taken = 0
    bench.clients(round(1 / OF_CROWD) - 1)
    assert bench.fill() == []
    bench.clients(1)
    assert len(bench.fill()) == 1


def test_a_request_that_runs_is_no_quiet_time() -> None:
    bench = Bench(FakeRoom(places=1))
    bench.end(bench.fill(), held=1)
    bench.room.taken = 1
    for _ in range(100):
        bench.now += QUIET_LINES * SECONDS / 2
        assert bench.fill() == []


def test_all_places_may_be_taken_where_the_server_is_for_batches() -> None:
    bench = Bench(FakeRoom(places=1), share=1.0)
    for _ in range(10):
        (place,) = bench.fill()
        bench.end([place], held=1)


def test_a_model_whose_workers_are_gone_gets_a_line() -> None:
    """It may be what starts one."""
    bench = Bench(FakeRoom(places=1))
    bench.end(bench.fill(), held=1)
    bench.clients(1)
    bench.room.places = 0
    assert len(bench.fill()) == 1


def test_a_model_that_counts_anew_is_not_asked_less() -> None:
    """A version that takes the place of another."""
    bench = Bench(FakeRoom(places=1))
    bench.clients(100)
    bench.end(bench.fill(), held=1)
    bench.room.answered = 0
    assert bench.fill() == []
    bench.clients(round(1 / MOST_HELD))
    assert len(bench.fill()) == 1


def test_owners_share_the_places() -> None:
    bench = Bench(FakeRoom(places=8))
    taken = [bench.take("ann") for _ in range(4)]
    assert bench.take("bob") is None
    for place in taken[:3]:
        assert place is not None
        bench.turns.give_back(place)
    given = [bench.take(owner) for owner in ("ann", "ann", "bob", "bob", "bob")]
    assert [place and place.of.owner for place in given] == ["ann", None, "bob", "bob", None]
    for place in given[2:4]:
        assert place is not None
        bench.turns.give_back(place)
    bench.now += 5.0
    place = bench.take("ann")
    assert place is not None
    assert place.of.owner == "ann"  # bob is gone


def turns_of(places: int, askers: list[tuple[str, str]], rounds: int) -> Counter[str]:
    """How many places each gets, where the lines of all wait, and the first is always the first to ask again."""
    bench, counts = Bench(FakeRoom(places=places), share=1.0), Counter[str]()
    running = list[LinePlace]()
    for _ in range(rounds):
        for owner, batch in askers:
            if (place := bench.take(owner, batch)) is not None:
                running.append(place)
                counts[batch or owner] += 1
        bench.end(running[:1])
        del running[:1]
    return counts


@pytest.mark.parametrize(("places", "owners"), [(1, 2), (1, 5), (2, 3), (4, 6)])
def test_owners_take_turns_where_there_are_fewer_places(places: int, owners: int) -> None:
    """Whoever asks first."""
    counts = turns_of(places, [(f"owner{n}", "") for n in range(owners)], 60)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(counts) == owners


def test_batches_of_an_owner_take_turns() -> None:
    counts = turns_of(1, [("ann", "a"), ("ann", "b"), ("bob", "c")], 60)
    assert counts == {"a": 15, "b": 15, "c": 30}


def test_the_next_one_is_woken() -> None:
    bench = Bench(FakeRoom(places=1))
    place = bench.take("ann")
    assert place is not None
    assert bench.take("ann") is bench.take("bob") is None
    bench.end([place])
    assert bench.woken == ["bob"]
    assert bench.take("ann") is None
    bench.now += WANTED
    assert bench.take("ann") is not None, "bob is gone"
