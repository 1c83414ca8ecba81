"""When the next frontend starts, and how long groups wait for it."""

from __future__ import annotations

from msx_frontend.supervision.restarts import PAUSES, PROVEN, Restarts


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def started(keep_groups: float = 60.0) -> tuple[Clock, Restarts]:
    clock = Clock()
    restarts = Restarts(keep_groups, clock)
    restarts.started()
    return clock, restarts


def test_a_frontend_that_never_answered_has_no_successor() -> None:
    restarts = Restarts(60.0, Clock())
    restarts.crashed()
    assert restarts.gives_up


def test_the_first_successors_start_at_once_and_later_ones_ever_later() -> None:
    clock, restarts = started()
    pauses = []
    for _ in range(len(PAUSES) + 1):
        restarts.crashed()
        assert restarts.next_start is not None
        pauses.append(restarts.next_start - clock.now)
        restarts.started()
    assert pauses == [*PAUSES, PAUSES[-1]]


def test_crashes_are_forgotten_after_a_while() -> None:
    clock, restarts = started()
    for _ in PAUSES:
        restarts.crashed()
        restarts.started()
    clock.now += PROVEN
    restarts.crashed()
    assert restarts.is_due


def test_groups_wait_from_the_crash_of_a_frontend_that_had_answered() -> None:
    clock, restarts = started()
    restarts.crashed()
    clock.now += 59
    restarts.crashed()  # its successor has not come up
    assert (restarts.groups_are_overdue, restarts.gives_up) == (False, False)
    assert restarts.seconds_left() == 0.0
    clock.now += 1
    assert restarts.groups_are_overdue
    restarts.groups_ended()
    assert restarts.gives_up


def test_the_last_frontend_says_how_long_they_wait() -> None:
    clock, restarts = started(60.0)
    restarts.started(5.0)
    restarts.crashed()
    clock.now += 5
    assert restarts.groups_are_overdue
    other = Restarts(60.0, clock)
    other.restore(restarts.passed())
    assert other.groups_are_overdue
    older = {name: value for name, value in restarts.passed().items() if name != "keep_groups"}
    other = Restarts(60.0, clock)
    other.restore(older)
    assert not other.groups_are_overdue


def test_groups_that_the_next_frontend_has_not_taken_over_are_overdue_too() -> None:
    clock, restarts = started()
    restarts.crashed()
    restarts.next_start = None
    restarts.started()
    clock.now += 20
    assert restarts.seconds_left() == 40.0
    clock.now += 40
    assert restarts.groups_are_overdue
    restarts.groups_ended()
    assert (restarts.gives_up, restarts.seconds_left()) == (False, None)
