"""Whether ranks of a frontend before this one go on."""

from __future__ import annotations

from msx_frontend.workers.taken_over import TakenOverRanks
from msx_protocol import Pong

IDLE, CALL = Pong(0, 7, 0.0, []), Pong(0, 7, 90.0, [])


def stuck(*pongs: tuple[int, Pong, float], ranks: int = 1) -> list[bool]:
    """Whether they are after each of these, and then 25 seconds later; they were taken over at 100."""
    taken, found = TakenOverRanks(ranks, 30.0, 100.0), []
    for rank, pong, now in pongs:
        taken.ponged(rank, pong, now)
        found.append(taken.is_stuck(now))
    return [*found, taken.is_stuck(max([now for _, _, now in pongs], default=110.0) + 25.0)]


def test_one_that_is_silent_is_given_as_long_as_a_call() -> None:
    assert stuck() == [True]
    assert stuck((0, IDLE, 104.0)) == [False, False]


def test_one_that_loads_has_as_long_as_it_answers() -> None:
    assert stuck(*((0, IDLE, 100.0 + second) for second in range(0, 90, 10))) == [False] * 10


def test_one_that_loads_is_not_silent_between_two_pings() -> None:
    """Its machine is busy after a crash: all workers and the frontend run at once."""
    taken = TakenOverRanks(1, 1.0, 100.0)
    taken.ponged(0, IDLE, 100.5)
    assert [taken.is_stuck(now) for now in (101.6, 105.5, 105.6)] == [False, False, True]
    taken.ponged(0, CALL, 106.0)
    assert [taken.is_stuck(now) for now in (107.0, 107.1)] == [False, True]
    taken.ponged(0, IDLE, 107.2)
    assert not taken.is_stuck(108.3)


def test_a_call_has_as_long_as_any_other() -> None:
    assert stuck((0, CALL, 101.0), (0, CALL, 121.0), (0, CALL, 131.0), (0, CALL, 132.0)) == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_a_stream_goes_on() -> None:
    pongs = [(0, Pong(0, 7 + number, 90.0, []), 101.0 + 20 * number) for number in range(5)]
    assert stuck(*pongs) == [False] * 6


def test_other_ranks_are_in_calls_while_they_warm_up() -> None:
    assert stuck((0, IDLE, 110.0), (1, CALL, 110.0), (0, IDLE, 135.0), (1, CALL, 135.0), ranks=2) == [False] * 5
    assert stuck((0, IDLE, 110.0), (0, IDLE, 135.0), ranks=2) == [False, True, True]
