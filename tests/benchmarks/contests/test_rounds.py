"""How many rounds a contest has."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.contests import rounds
from benchmarks.contests.before import Pair
from benchmarks.contests.rounds import LEAST, MOST, settling_rounds


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "progress", lambda _: None)


def played(planned: int, ratios: list[float] | None, most: int = MOST) -> int:
    """Count the rounds of a contest whose ratios repeat; None: without another checkout."""
    now: list[float] = []

    def pairs() -> list[Pair]:
        return [] if ratios is None else [Pair("msx", "requests/s", now, [1.0] * len(now))]

    for number in settling_rounds("sample", planned, pairs, most):
        now.append(ratios[number % len(ratios)] if ratios else 1.0)
    return len(now)


@pytest.mark.parametrize(
    ("planned", "ratios", "expected"),
    [
        (3, None, 3),
        (3, [1.0], LEAST),
        (12, [1.0], 12),
        (3, [0.5, 1.5], MOST),
        (MOST + 5, [0.5, 1.5], MOST + 5),
    ],
)
def test_rounds(planned: int, ratios: list[float] | None, expected: int) -> None:
    assert played(planned, ratios) == expected


def test_a_contest_of_short_rounds_may_have_more() -> None:
    assert played(3, [0.5, 1.5], most=MOST + 20) == MOST + 20


def test_rounds_end_where_the_interval_is_narrow() -> None:
    noisy = [*np.random.default_rng(0).normal(1, 0.02, MOST)]
    assert LEAST < played(3, noisy) < MOST
