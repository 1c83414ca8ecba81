"""What benchmarks/batching.py makes of its curves, and that its client counts from when a request was due."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from statistics import fmean, pstdev

import pytest

from benchmarks._batching_arrivals import ARRIVALS
from benchmarks._batching_curves import advantage, curve, p99, sustained, worst_share
from benchmarks._client import Address
from benchmarks._open_loop import Outcome, run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BAD = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno"
FAST = {100.0: 0.01, 1000.0: 0.1, 2000.0: inf}
SLOW = {100.0: 0.05, 1000.0: 0.1, 2000.0: inf}


def outcome(taken: list[float], failed: int = 0) -> Outcome:
    return Outcome(taken, failed, 0.0, 0.0, 1.0)


def test_who_got_no_answer_took_for_ever() -> None:
    assert p99(outcome([0.001 * n for n in range(200)])) == pytest.approx(0.198)
    assert p99(outcome([0.001] * 98, failed=2)) == inf
    assert p99(outcome([], failed=5)) == inf


def test_a_curve_has_the_median_of_the_rounds() -> None:
    assert curve({5.0: [outcome([1.0]), outcome([9.0]), outcome([2.0])]}) == {5.0: 2.0}


def test_the_rate_that_keeps_a_bound_is_found_between_the_measured_ones() -> None:
    assert sustained(FAST, 0.01) == pytest.approx(100)
    assert sustained(FAST, 0.0316) == pytest.approx(316, rel=0.01)
    assert sustained(FAST, 0.5) == 1000  # and no more, where the next is none
    assert sustained(FAST, 0.001) == 0
    assert sustained({10.0: 0.2, 20.0: 0.1}, 0.15) == 20  # what it cannot keep when few ask does not count against it


def test_each_bound_and_the_whole_sweep() -> None:
    assert worst_share(FAST, [FAST, SLOW], [0.01, 0.1]) == pytest.approx(1)
    assert worst_share(SLOW, [FAST], [0.05, 0.1]) == pytest.approx(100 / sustained(FAST, 0.05))
    assert advantage(FAST, SLOW, [FAST, SLOW], [0.01, 0.1, 1e-9]) == pytest.approx(2)  # it keeps one of two
    assert advantage(FAST, {100.0: 1.0}, [FAST], [0.01]) == inf


@pytest.mark.parametrize("kind", ARRIVALS)
def test_arrivals_have_the_rate_that_was_asked_for(kind: str) -> None:
    due = ARRIVALS[kind](100.0, 200.0, random.Random(0))
    assert due == sorted(due)
    assert len(due) == pytest.approx(20_000, rel=0.1)
    gaps = [after - before for before, after in itertools.pairwise(due)]
    spread = pstdev(gaps) / fmean(gaps)
    assert spread > 1.5 if kind == "bursty" else spread == pytest.approx(1, abs=0.1)


@contextmanager
def serving(*answers: bytes) -> Iterator[Address]:
    """Answers the first request with the first, and so on, on one connection each."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            for answer in answers:
                with listener.accept()[0] as connection:
                    while b"body" not in connection.recv(1 << 16):
                        continue
                    if answer:
                        connection.sendall(answer)
                        connection.recv(1)  # until the client has it

        thread = threading.Thread(target=work)
        thread.start()
        yield Address("127.0.0.1", listener.getsockname()[1])
        thread.join()


def test_the_client_counts_what_is_answered_by_200() -> None:
    with serving(OK) as address:
        done = run(address, "/", b"body", [0.0], 30.0)
    assert (len(done.taken), done.failed) == (1, 0)
    with serving(BAD) as address:
        assert run(address, "/", b"body", [0.0], 30.0).failed == 1
    with serving(b"") as address:
        assert run(address, "/", b"body", [0.0], 30.0).failed == 1


def test_a_request_s_time_counts_from_when_it_was_due() -> None:
    """Also where it was due long before the client came to send it."""
    with serving(OK) as address:
        (taken,) = run(address, "/", b"body", [-5.0], 30.0).taken
    assert taken > 4.9
