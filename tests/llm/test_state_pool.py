from __future__ import annotations

from msx_llm.blocks import BlockPlacement
from msx_llm.state_pool import StatePool
from msx_llm.step import CopyPositions
from tests.llm.test_slots import PROMPT, placed, written


def test_a_text_goes_on_where_another_one_ended() -> None:
    pool = StatePool(2, 128, 4)
    slot = written(pool, PROMPT)
    pool.free(slot)
    assert placed(pool, [*PROMPT, 5, 6]) == BlockPlacement(slot, 20, [])
    assert pool.prefixes.hit == 20


def test_nothing_is_reused_of_a_text_that_went_on_otherwise() -> None:
    """Its keys would be there, and its state knows of what followed."""
    pool = StatePool(2, 128, 4)
    pool.free(written(pool, PROMPT))
    assert placed(pool, [*PROMPT[:19], 77, 78]).cached == 0
    assert placed(pool, PROMPT).cached == 0


def test_a_text_in_use_is_copied_while_no_step_moves_its_state() -> None:
    pool = StatePool(3, 128, 4)
    slot = written(pool, PROMPT)
    other = placed(pool, [*PROMPT, 9])
    assert other == BlockPlacement(other.slot, 20, [CopyPositions(slot, other.slot, 20)])
    pool.begin(slot)
    assert placed(pool, [*PROMPT, 9]).cached == 0
    pool.wrote(slot, 20)
    pool.free(other.slot)
    assert placed(pool, [*PROMPT, 9]).cached == 20


def test_a_text_that_left_in_the_middle_of_a_step_is_not_reused() -> None:
    pool = StatePool(1, 128, 4)
    slot = written(pool, PROMPT)
    pool.begin(slot)
    pool.free(slot)
    assert placed(pool, [*PROMPT, 5]).cached == 0


def test_a_state_is_kept_where_texts_part() -> None:
    """The second text computes up to there, keeps the state, and goes on; the third one finds it."""
    pool = StatePool(3, 256, 4)
    first = written(pool, PROMPT)
    pool.begin(first)
    second = placed(pool, [*PROMPT[:11], 50, 51, 52])
    assert (second.cached, second.parts) == (0, 11)
    pool.wrote(second.slot, 11)
    pool.kept(second.slot, 11)
    pool.begin(second.slot)
    pool.wrote(second.slot, 14)
    third = placed(pool, [*PROMPT[:11], 60, 61])
    assert third == BlockPlacement(third.slot, 11, [CopyPositions(second.slot, third.slot, 11)])
    for slot in (first, second.slot, third.slot):
        pool.begin(slot)
    pool.free(second.slot)
    pool.free(third.slot)
    again = placed(pool, [*PROMPT[:11], 70])
    assert again == BlockPlacement(again.slot, 11, [CopyPositions(again.slot, again.slot, 11)]), "in place"


def test_a_kept_state_that_is_about_to_be_replaced_is_not_reused() -> None:
    """Steps of a text that has come before are taken first."""
    pool = StatePool(3, 256, 4)
    slot = written(pool, PROMPT)
    pool.begin(slot)
    pool.kept(slot, 8)
    assert placed(pool, [*PROMPT[:8], 50]).cached == 8
    pool.kept(slot, 0)
    assert placed(pool, [*PROMPT[:8], 51]).parts == 8


def test_no_state_is_kept_for_less_than_a_block() -> None:
    pool = StatePool(2, 128, 4)
    slot = written(pool, PROMPT)
    pool.begin(slot)
    assert placed(pool, [*PROMPT[:3], 50, 51]).parts == 0


def test_the_longest_of_several() -> None:
    pool = StatePool(3, 128, 4)
    for length in (8, 12):
        pool.free(written(pool, PROMPT[:length]))
    assert placed(pool, PROMPT).cached == 12


def test_less_than_a_block_is_enough() -> None:
    pool = StatePool(2, 128, 4)
    pool.free(written(pool, [1, 2, 3]))
    assert placed(pool, [1, 2, 3, 4]).cached == 3


def test_only_texts_of_one_root_share() -> None:
    pool = StatePool(2, 128, 4)
    pool.free(written(pool, PROMPT))
    placement = pool.take([*PROMPT, 5], root=b"adapter")
    assert placement is not None
    assert placement.cached == 0


def test_nothing_is_reused_of_memory_that_was_released_or_failed() -> None:
    pool = StatePool(1, 128, 4)
    pool.free(written(pool, PROMPT))
    pool.forget()
    assert placed(pool, [*PROMPT, 5]).cached == 0
    pool = StatePool(1, 128, 4)
    slot = written(pool, PROMPT)
    pool.scrap(slot)
    assert placed(pool, [*PROMPT, 5]).cached == 0
