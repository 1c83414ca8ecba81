"""Better priorities go first, and no text waits for ever."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_llm import patience
from msx_llm.patience import PATIENCE
from msx_llm.sequence import TokenSequence
from msx_llm.waiting import OVERDUE
from tests.llm.test_scheduler import Stage

WORST = 1 << 62


def test_a_text_that_waits_gives_way_to_so_many_and_no_more() -> None:
    stage = Stage(slots=1)
    (first,) = stage.add([1], limit=2)
    stage.step()
    (low,) = stage.add([2], priority=WORST, limit=2)
    others = [stage.add([3], priority=-WORST, limit=3)[0] for _ in range(PATIENCE + 5)]
    stage.until(low)
    assert first.finished
    assert [other.finished for other in others] == [True] * PATIENCE + [False] * 5


def test_equal_priorities_and_earlier_ones_do_not_count() -> None:
    stage = Stage(slots=1)
    for _ in range(PATIENCE + 5):
        stage.add([1], priority=-1, limit=2)
    texts = [stage.add([2], limit=2)[0] for _ in range(PATIENCE + 5)]
    stage.until(texts[-1])
    assert {text.given_way for text in texts} == {0}


def test_a_prompt_that_is_being_computed_goes_on() -> None:
    """Later prompts of better priorities are computed first, but not for ever."""
    stage = Stage(slots=4, context=256)
    (low,) = stage.add(list(range(100, 200)), priority=1, limit=102)
    stage.step()
    others: list[TokenSequence] = []
    while not low.finished:
        others += stage.add([len(others), 7, 7], limit=4)
        stage.step()
        assert len(others) < 20 * PATIENCE
    assert low.order[0] == OVERDUE
    assert sum(other.finished for other in others) >= PATIENCE


def test_who_comes_late_to_be_overdue_waits_behind_who_came_first() -> None:
    stage = Stage(slots=1)
    stage.add([1], limit=2)
    stage.step()
    lows = [stage.add([2], priority=priority, limit=2)[0] for priority in (9, 5, 7)]
    for _ in range(PATIENCE):
        stage.add([3], limit=2)
    last = stage.add([4], limit=2)[0]
    ends = [lows.index(one) for plan in stage.until(last) for one in plan.sequences if one in lows and one.finished]
    assert ends == [0, 1, 2]


arrivals = st.lists(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(1, 20), st.integers(1, 8), st.integers(1, 2)), max_size=2),
    min_size=5,
    max_size=60,
)


@settings(max_examples=150)
@given(arrivals, st.integers(1, 4), st.sampled_from([64, 96, 256]), st.booleans())
def test_whatever_comes_none_is_passed_more_often(
    arrivals: list[list[tuple[int, int, int, int]]], slots: int, total: int, mixes: bool
) -> None:
    stage = Stage(slots=slots, context=64, total=total, mixes=mixes)
    passed: dict[TokenSequence, int] = {}
    with mock.patch.object(patience, "PATIENCE", 3):
        for group in arrivals:
            for priority, prompt, more, texts in group:
                passed.update(
                    dict.fromkeys(stage.add([prompt] * prompt, priority, limit=prompt + more, texts=texts), 0)
                )
            if stage.scheduler.waiting or stage.scheduler.running:
                count(stage, passed)
        while stage.scheduler.waiting or stage.scheduler.running:
            count(stage, passed)
    assert all(text.finished for text in passed)
    assert max(passed.values(), default=0) <= 3


def count(stage: Stage, passed: dict[TokenSequence, int]) -> None:
    """A step, and which texts of worse priorities that wait it has passed by. Equal ones take turns."""
    before = {text: text.priority for text in stage.scheduler.waiting}
    stage.step()
    waiting = set(stage.scheduler.waiting)
    for admitted in before.keys() - waiting:
        for other in before.keys() & waiting:
            passed[other] += other.request < admitted.request and before[other] > before[admitted]


@pytest.mark.parametrize("mixes", [False, True])
@pytest.mark.parametrize("total", [64, 256])
def test_a_stream_of_better_ones_without_end_lets_every_text_end(total: int, mixes: bool) -> None:
    """With little memory texts have to leave, and come back."""
    stage = Stage(slots=3, prefill=4, total=total, mixes=mixes)
    (low,) = stage.add([1] * 20, priority=1, limit=60)
    step = 0
    while not low.finished:
        step += 1
        if step % 3 == 0:
            stage.add([step] * 9, limit=30)
        stage.step()
        assert step < 60 * PATIENCE
