"""Requests take turns: whatever one asks for, a neighbour is served after a bounded number of turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.sequence import TokenSequence
from msx_llm.waiting import OVERDUE, WaitingTexts, last_in_turn
from msx_sdk.generation import Owner
from tests.llm.test_scheduler import NO_SAMPLER, Stage

ANNE, BERT, CARL = Owner("a", 1), Owner("b", 2), Owner("a", 3)


def text(owner: Owner, number: int, index: int = 0, priority: int = 0) -> TokenSequence:
    return TokenSequence([1], (priority, number, index), 9, NO_SAMPLER, asked_by=owner)


def taken(waiting: WaitingTexts) -> list[TokenSequence]:
    found = []
    while (first := waiting.first) is not None:
        assert waiting.take() is first
        found.append(first)
    assert not len(waiting)
    return found


def turns(waiting: WaitingTexts) -> list[Owner]:
    return [one.owner for one in taken(waiting)]


def filled(*owners: tuple[Owner, int]) -> WaitingTexts:
    waiting = WaitingTexts()
    for number, (owner, texts) in enumerate(owners):
        for index in range(texts):
            waiting.add(text(owner, number, index))
    return waiting


def test_requests_take_turns() -> None:
    first, second = Owner("", 1), Owner("", 2)
    assert turns(filled((first, 3), (second, 2))) == [first, second, first, second, first]


def test_keys_take_turns_whatever_number_of_requests_they_have() -> None:
    assert turns(filled((ANNE, 2), (CARL, 2), (BERT, 3))) == [ANNE, BERT, CARL, BERT, ANNE, BERT, CARL]


def test_jobs_of_one_request_share_its_turn() -> None:
    first, second = Owner("", 1), Owner("", 2)
    assert turns(filled((first, 2), (first, 2), (second, 1))) == [first, second, first, first, first]


def test_texts_of_a_request_go_in_their_order() -> None:
    orders = [one.order for one in taken(filled((ANNE, 2), (BERT, 1), (ANNE, 2)))]
    assert [order for order in orders if order[1] != 1] == [(0, 0, 0), (0, 0, 1), (0, 2, 0), (0, 2, 1)]


def test_better_priorities_and_overdue_texts_come_first() -> None:
    waiting = WaitingTexts()
    texts = [
        text(ANNE, 1),
        text(ANNE, 2, priority=-1),
        text(BERT, 4, priority=OVERDUE),
        text(ANNE, 3, priority=OVERDUE),
    ]
    for one in texts:
        waiting.add(one)
    assert [*waiting] == [texts[3], texts[2], texts[1], texts[0]]
    assert waiting.worse_than(-1) == [texts[0]]
    assert taken(waiting) == [texts[3], texts[2], texts[1], texts[0]]


def test_what_had_to_leave_is_the_next_one() -> None:
    waiting = filled((ANNE, 2), (BERT, 2))
    first = waiting.take()
    waiting.put_back(first)
    assert waiting.first is first
    assert turns(waiting) == [ANNE, BERT, ANNE, BERT]


def test_who_leaves_is_forgotten() -> None:
    waiting = filled((ANNE, 2), (BERT, 1))
    for one in [*waiting]:
        waiting.remove(one)
    assert waiting.first is None
    assert len(waiting) == 0


OWNERS = st.lists(st.tuples(st.builds(Owner, st.sampled_from("abc"), st.integers(1, 4)), st.integers(1, 9)), max_size=8)


@given(OWNERS, st.sampled_from("abcd"))
def test_who_comes_has_a_turn_after_one_of_each_request_of_its_key(owners: list[tuple[Owner, int]], key: str) -> None:
    """And after as many of each other key."""
    came = Owner(key, 99)
    order = turns(filled(*owners, (came, 1)))
    assert len(order) == sum(texts for _, texts in owners) + 1
    keys = {owner.key for owner, _ in owners} | {key}
    assert order.index(came) < len(keys) * (len({owner for owner, _ in owners if owner.key == key}) + 1)


def neighbour_is_served_after(stage: Stage, owner: Owner | None) -> int:
    """Texts of others that end before the neighbour's one."""
    many = [one for _ in range(4) for one in stage.add([1, 2], limit=6, texts=128, owner=Owner("a", 1))]
    stage.step()
    (neighbour,) = stage.add([3], limit=6, owner=owner)
    stage.until(neighbour)
    return sum(one.finished for one in many)


@pytest.mark.parametrize("mixes", [False, True])
@pytest.mark.parametrize("owner", [None, Owner("a", 2), Owner("b", 2)])
def test_a_neighbour_of_512_texts_waits_for_a_slot_and_its_turn(owner: Owner | None, mixes: bool) -> None:
    assert neighbour_is_served_after(Stage(slots=4, mixes=mixes), owner) <= 8


@pytest.mark.parametrize("mixes", [False, True])
def test_with_little_memory_too(mixes: bool) -> None:
    """Texts have to leave for others to grow: those of the request that has most."""
    assert neighbour_is_served_after(Stage(slots=8, total=64, mixes=mixes), Owner("a", 2)) <= 16


def test_different_prompts_of_one_request_do_not_hold_up_a_neighbours() -> None:
    stage = Stage(slots=4, prefill=4)
    many = [stage.add([number, 8, 9, *range(20)], limit=25, owner=Owner("a", 1))[0] for number in range(64)]
    stage.step()
    (neighbour,) = stage.add([77, 8, 9, *range(20)], limit=25, owner=Owner("a", 2))
    stage.until(neighbour)
    assert sum(one.finished for one in many) <= 8


def test_keys_have_equal_shares_of_the_slots() -> None:
    """One key with twenty requests, another with one."""
    stage = Stage(slots=1)
    for request in range(20):
        stage.add([1], limit=2, texts=3, owner=Owner("a", request))
    mine = stage.add([2], limit=2, texts=10, owner=Owner("b", 99))
    plans = stage.until(mine[-1])
    owners = [one.owner.key for plan in plans for one in plan.sequences if one.finished]
    assert owners.count("a") <= 11


def test_who_leaves_for_others_to_grow() -> None:
    running = [text(ANNE, 1), text(BERT, 2), text(ANNE, 1, 1), text(ANNE, 1, 2), text(CARL, 3)]
    assert last_in_turn(running).order == (0, 1, 2)
    running[3].in_flight = True
    assert last_in_turn(running).order == (0, 1, 1)
    assert last_in_turn([running[0], running[1]]) is running[1]
