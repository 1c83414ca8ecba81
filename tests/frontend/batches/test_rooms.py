"""When a line has a place beside the requests of clients."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msx_frontend.batches.rooms import QUIET, LinePlace, LineTurns
from tests.frontend.batches.serving import FakeRoom

PLACE = LinePlace("m", "")
CASES = [
    (FakeRoom(places=8), 4),
    (FakeRoom(places=8, taken=3), 1),
    (FakeRoom(places=8, taken=4), 0),
    (FakeRoom(places=8, is_wanted=True), 0),
    (FakeRoom(places=3), 1),
    (FakeRoom(places=1), 1),
    (FakeRoom(places=0), 1),
]


@pytest.mark.parametrize(("room", "lines"), CASES)
def test_lines_fill_a_share(room: FakeRoom, lines: int) -> None:
    others, room = room.taken, replace(room)
    turns, taken = LineTurns(room, 0.5, lambda: 0.0), 0
    while taken < 10 and turns.take({}, "m", "") is not None:
        taken += 1
        room.taken = others + taken
    assert taken == lines


def test_a_place_is_given_back() -> None:
    turns = LineTurns(FakeRoom(places=2), 0.5, lambda: 0.0)
    assert turns.take({}, "m", "") == PLACE
    assert turns.take({}, "m", "") is None
    turns.give_back(PLACE)
    assert turns.take({}, "m", "") == PLACE


def test_the_only_place_is_a_lines_when_no_client_has_asked_for_a_while() -> None:
    now, room = [0.0], FakeRoom(places=1, taken=1)
    turns = LineTurns(room, 0.5, lambda: now[0])
    assert turns.take({}, "m", "") is None
    room.taken = 0
    assert turns.take({}, "m", "") is None
    now[0] = QUIET
    assert turns.take({}, "m", "") == PLACE
    turns.give_back(PLACE)
    assert turns.take({}, "m", "") == PLACE  # lines follow each other without a pause


def test_owners_share_the_places() -> None:
    now, room = [0.0], FakeRoom(places=8)
    turns = LineTurns(room, 0.5, lambda: now[0])
    taken = [turns.take({}, "m", "ann") for _ in range(4)]
    assert turns.take({}, "m", "bob") is None
    for place in taken[:3]:
        assert place is not None
        turns.give_back(place)
    owners = [turns.take({}, "m", owner) for owner in ("ann", "ann", "bob", "bob", "bob")]
    assert [place and place.owner for place in owners] == ["ann", None, "bob", "bob", None]
    turns.give_back(LinePlace("m", "bob"))
    turns.give_back(LinePlace("m", "bob"))
    now[0] = 5.0
    assert turns.take({}, "m", "ann") == LinePlace("m", "ann")  # bob is gone
