"""When overlap pays, and when the next batch has to begin."""

from __future__ import annotations

import time

import pytest

from msx_backend.overlap.comparison import BATCHES
from msx_backend.overlap.pace import Pace


def ended(pace: Pace, *, followed: bool) -> None:
    pace.ended(pace.comparison.in_turn, 1, 0.0, followed=followed)


def paced(prepare: float, inference: float, answer: float) -> Pace:
    pace = Pace()
    pace.prepared(prepare)
    pace.inferred(inference)
    pace.answered(answer)
    for _ in range(BATCHES + 1):
        ended(pace, followed=True)
    return pace


@pytest.mark.parametrize(
    ("prepare", "inference", "answer", "pays"),
    [
        (0, 0, 0, False),
        (0.001, 0.020, 0.001, True),
        (0.00001, 0.020, 0.00001, False),  # nothing to gain
        (0.010, 0.00005, 0.010, False),
        (0.0001, 0.020, 0.0001, True),
    ],
)
def test_overlap_pays_where_both_parts_are_long(prepare: float, inference: float, answer: float, pays: bool) -> None:
    assert paced(prepare, inference, answer).decide() is pays


def test_it_does_not_change_its_mind_at_each_batch() -> None:
    pace = paced(0.0001, 0.020, 0.0001)
    assert pace.decide()
    pace.prepare = 0.00002
    assert pace.decide()
    pace.answer = 0.00002
    assert not pace.decide()
    pace.answer = 0.0001
    assert not pace.decide()


def test_lone_requests_do_not_overlap() -> None:
    pace = paced(0.001, 0.020, 0.001)
    assert pace.decide()
    for _ in range(10):
        ended(pace, followed=False)
    assert pace.decide()
    for _ in range(20):
        ended(pace, followed=False)
    assert not pace.decide()
    ended(pace, followed=True)
    assert not pace.decide()
    for _ in range(4):
        ended(pace, followed=True)
    assert pace.decide()


def test_averages_follow_slowly() -> None:
    pace = paced(0.001, 0.010, 0.001)
    pace.inferred(0.020)
    assert pace.inference == pytest.approx(0.011)


def test_the_next_batch_begins_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = paced(0.002, 0.020, 0.001)
    assert pace.seconds_left() == 0  # nothing runs
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pace.begin()
    now = 100.020
    pace.end()
    pace.begin()
    now = 100.025
    assert pace.seconds_left() == pytest.approx(0.019 - 0.002 - 0.005)


def test_a_postprocess_of_more_than_a_moment_is_handed_on() -> None:
    assert paced(0.001, 0.02, 0.0001).answers_quickly
    assert not paced(0.001, 0.02, 0.0003).answers_quickly
