"""Waiting for requests that join the next batch."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from msx_backend.overlap.gathering import Gathering
from msx_backend.overlap.pace import Pace
from tests.backend.harness import wait_until


class FixedPace(Pace):
    left = 60.0

    def seconds_left(self) -> float:
        return self.left


class Waiting:
    """A gathering, and the server's end of its socket."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.pace = FixedPace()
        self.gathering = Gathering(self.theirs, self.pace)


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    one = Waiting()
    with one.ours, one.theirs:
        yield one
        one.gathering.close()


def test_requests_end_the_wait(waiting: Waiting) -> None:
    with ThreadPoolExecutor(1) as thread:
        more = thread.submit(waiting.gathering.more_come)
        waiting.ours.sendall(b"x")
        assert more.result(30)


def test_a_device_that_is_free_ends_the_wait(waiting: Waiting) -> None:
    with ThreadPoolExecutor(1) as thread:
        more = thread.submit(waiting.gathering.more_come)
        wait_until(lambda: waiting.gathering._waits)
        waiting.pace.left = 0.0
        waiting.gathering.device_is_free()
        assert not more.result(30)


def test_what_an_earlier_wait_was_told_does_not_end_this_one(waiting: Waiting) -> None:
    waiting.gathering._waits = True
    waiting.gathering.device_is_free()
    waiting.ours.sendall(b"x")
    assert waiting.gathering.more_come()


@pytest.mark.parametrize("left", [0.0, -1.0, 0.0009])
def test_nobody_waits_for_less_than_a_millisecond(waiting: Waiting, left: float) -> None:
    waiting.pace.left = left
    waiting.ours.sendall(b"x")
    assert not waiting.gathering.more_come()


def test_the_predicted_end_ends_the_wait(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.002, 0.0])
    monkeypatch.setattr(waiting.pace, "seconds_left", lambda: next(times))
    assert not waiting.gathering.more_come()


def test_no_signal_is_kept_where_nobody_waits(waiting: Waiting) -> None:
    waiting.gathering.device_is_free()
    waiting.ours.sendall(b"x")
    assert waiting.gathering.more_come()


def test_looking_for_requests_while_a_wait_begins(waiting: Waiting) -> None:
    """Python refuses two threads that poll one object."""
    with ThreadPoolExecutor(1) as thread:
        more = thread.submit(waiting.gathering.more_come)
        wait_until(lambda: waiting.gathering._waits)
        waiting.gathering._waits = False  # as the main thread has read it, just before
        while not more.done() and not waiting.gathering.more_wait():
            waiting.ours.sendall(b"x")
        assert more.result(30)
