"""How long a waiting request will wait, by what was answered while others waited."""

from __future__ import annotations

import pytest

from msx_frontend.queueing.answer_rate import WINDOW, AnswerRate


def looked(*looks: tuple[float, int]) -> AnswerRate:
    rate = AnswerRate()
    for now, answered in looks:
        rate.sample(now, answered)
    return rate


def test_the_wait_is_unknown_before_the_first_look() -> None:
    assert AnswerRate().seconds(0, 0, waiting=64, at_once=8) == 0


def test_the_queue_over_the_rate_of_answers() -> None:
    rate = looked((100, 10), (102, 90))
    assert rate.seconds(102, 90, waiting=64, at_once=8) == pytest.approx(64 / 40)


def test_before_the_first_answer_it_is_longer_than_has_been_waited_for() -> None:
    rate = looked((100, 0))
    assert rate.seconds(103, 0, waiting=64, at_once=8) == pytest.approx(64 / 8 * 3)


def test_only_the_last_while_counts() -> None:
    rate = looked((0, 0), (1, 1000), (WINDOW + 1, 1030))
    assert rate.seconds(WINDOW + 1, 1030, waiting=10, at_once=1) == pytest.approx(10)


def test_a_pause_does_not_count() -> None:
    rate = looked((0, 0), (2, 20))
    rate.pause(2, 20)
    assert rate.seconds(1000, 25, waiting=10, at_once=1) == pytest.approx(1)
    rate.sample(1000, 25)
    assert rate.seconds(1000.5, 25, waiting=10, at_once=1) == pytest.approx(1), "half a second says little"
    assert rate.seconds(1002, 29, waiting=10, at_once=1) == pytest.approx(5)


def test_workers_that_answer_nothing_any_more() -> None:
    rate = looked((0, 0), (2, 20))
    rate.pause(2, 20)
    rate.sample(10, 20)
    assert rate.seconds(30, 20, waiting=10, at_once=1) >= 1


def after_a_pause() -> AnswerRate:
    """Forty answers a second were measured before it; requests wait again since 200."""
    rate = AnswerRate()
    rate.sample(100, 10)
    rate.pause(102, 90)
    rate.sample(200, 90)
    return rate


def test_after_a_pause_the_rate_that_was_known_counts_for_a_second() -> None:
    rate = after_a_pause()
    assert rate.seconds(200.5, 91, waiting=40, at_once=8) == pytest.approx(1)
    assert rate.seconds(202, 110, waiting=40, at_once=8) == pytest.approx(40 / 10)


def test_after_a_pause_the_rate_that_was_known_counts_until_an_answer_comes() -> None:
    assert after_a_pause().seconds(205, 90, waiting=40, at_once=8) == pytest.approx(1)


def test_answers_within_the_instant_of_the_first_look_give_no_rate() -> None:
    rate = AnswerRate()
    rate.sample(100, 0)
    assert rate.seconds(100, 5, waiting=8, at_once=8) == pytest.approx(0.001)
