"""Results of benchmarks/batching/batching.py from its curves; its client counts from when a request was due."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from statistics import fmean, pstdev

import click
import pytest

from benchmarks.batching.arrivals import ARRIVALS
from benchmarks.batching.batching import gains_table, targets
from benchmarks.batching.curves import curve, gains, over_the_sweep, p99, rising, sustained
from benchmarks.batching.rounds import Field
from benchmarks.batching.settings import DYNAMIC, Setting
from benchmarks.load.client import Address
from benchmarks.load.open_loop import OpenLoop, Outcome

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


def test_a_p99_does_not_fall_where_more_is_asked() -> None:
    assert rising({10.0: 0.1, 20.0: 0.4, 30.0: 0.1, 40.0: inf, 50.0: 0.3}) == pytest.approx(
        {10.0: 0.1, 20.0: 0.2, 30.0: 0.2, 50.0: 0.3}
    )
    assert rising({10.0: 0.4, 20.0: 0.1}) == pytest.approx({10.0: 0.2, 20.0: 0.2})


def test_the_rate_that_keeps_a_bound_is_found_between_the_measured_ones() -> None:
    assert sustained(FAST, 0.01) == pytest.approx(100)
    assert sustained(FAST, 0.0316) == pytest.approx(316, rel=0.01)
    assert sustained(FAST, 0.5) == 1000  # and no more, where the next is none
    assert sustained(FAST, 0.001) == pytest.approx(10)
    assert sustained({10.0: inf}, 1.0) == 0


def test_gains_at_each_rate_and_over_the_sweep() -> None:
    assert gains(FAST, FAST, 1.0) == pytest.approx(
        {100.0: 1.0, 1000.0: 1.0, 2000.0: 0.5}
    )  # where it has no p99: the limit
    found = gains(FAST, SLOW, 0.05)
    assert found[100.0] == pytest.approx(5.0, rel=0.01)
    assert found[1000.0] == pytest.approx(0.5, rel=0.01)
    lucky = {100.0: 0.01, 1000.0: 0.4, 2000.0: 0.025}  # its curve does not fall either
    assert gains(FAST, lucky, 1.0) == pytest.approx({100.0: 1.0, 1000.0: 1.0, 2000.0: 0.5})
    assert over_the_sweep({1.0: 4.0, 2.0: 0.25}) == pytest.approx(1)


def test_the_worst_rate_and_the_best_single_wait_decide() -> None:
    table = {
        "msx fixed 1 ms": {100.0: 0.96, 200.0: 2.0},
        "msx fixed 9 ms": {100.0: 9.0, 200.0: 1.1},
        "mosec 1 ms": {100.0: 0.9},
    }
    shown = [(target.measured, target.met) for target in targets(table)]
    assert shown == [("0.96", True), ("1.39", True), ("0.90", False), ("0.90", False)]
    assert gains_table("t", table, [100.0, 200.0]).rows[2] == ["mosec 1 ms", "0.90", "", "0.90"]


class Replayed(OpenLoop):
    """No client: each setting, by its path, has this p99 (s) at a rate, and it is noted who was asked for what."""

    def __init__(self, **known: dict[float, float]) -> None:
        self.known, self.asked = known, list[tuple[str, float]]()

    def run(self, address: Address, path: str, body: bytes, due: Sequence[float], patience: float) -> Outcome:
        rate = min(self.known[path], key=lambda rate: abs(rate - len(due) / due[-1]))
        self.asked.append((path, rate))
        value = self.known[path][rate]
        return outcome([] if value == inf else [value], failed=int(value == inf))


def test_who_is_far_from_the_best_is_asked_once_and_who_gives_up_at_no_higher_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.batching.rounds.PAUSE", 0.0)
    client = Replayed(
        dynamic={1000.0: 0.01, 4000.0: 0.02, 16000.0: 0.03},
        near={1000.0: 0.012, 16000.0: 0.07},
        far={1000.0: 0.03, 16000.0: 0.05},
        slow={1000.0: inf},
    )
    names = {"dynamic": DYNAMIC, "near": "near", "far": "far", "slow": "slow"}
    settings = [Setting(name, Address("", 0), path) for path, name in names.items()]
    field = Field(client, settings, b"", "poisson", 1.0, [1000.0, 16000.0], [4000.0])
    field.play(0)
    assert client.asked == [
        *((path, 1000.0) for path in ("dynamic", "near", "far", "slow")),
        ("dynamic", 4000.0),
        *((path, 16000.0) for path in ("dynamic", "near", "far")),
    ]
    client.asked.clear()
    field.play(1)
    assert sorted(client.asked) == [
        ("dynamic", 1000.0),
        ("dynamic", 4000.0),
        ("dynamic", 16000.0),
        ("far", 16000.0),
        ("near", 1000.0),
    ]


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
    with OpenLoop() as client:
        with serving(OK) as address:
            done = client.run(address, "/", b"body", [0.0], 30.0)
        assert (len(done.taken), done.failed) == (1, 0)
        for answer in (BAD, b""):
            with serving(answer) as address:
                assert client.run(address, "/", b"body", [0.0], 30.0).failed == 1


def test_a_request_s_time_counts_from_when_it_was_due() -> None:
    """Also where it was due long before the client came to send it."""
    with OpenLoop() as client, serving(OK) as address:
        (taken,) = client.run(address, "/", b"body", [-5.0], 30.0).taken
    assert taken > 4.9


def test_a_client_that_ends_is_told() -> None:
    with OpenLoop() as client, pytest.raises(click.ClickException, match="client of the benchmark failed"):
        client.run(Address("127.0.0.1", 1), "/", b"body", [0.0], 1.0)  # where no server listens
