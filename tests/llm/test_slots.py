from __future__ import annotations

from msx_llm.blocks import BlockPlacement
from msx_llm.slots import SlotPool
from msx_llm.step import CopyPositions, Decode

PROMPT = list(range(20))


def placed(pool: SlotPool, tokens: list[int], **how: int | bool | None) -> BlockPlacement:
    placement = pool.take(tokens, **how)  # type: ignore[arg-type]
    assert placement is not None
    return placement


def written(pool: SlotPool, tokens: list[int]) -> int:
    slot = placed(pool, tokens).slot
    pool.wrote(slot, len(tokens))
    return slot


def test_a_retired_slot_is_reused_in_place() -> None:
    pool = SlotPool(2, 128, 4)
    slot = written(pool, PROMPT)
    pool.free(slot)
    assert placed(pool, [*PROMPT, 5, 6]) == BlockPlacement(slot, 20, [])
    assert pool.prefixes.hit == 20
    assert pool.prefixes.placed == 42


def test_the_last_token_is_always_computed() -> None:
    pool = SlotPool(2, 128, 4)
    pool.free(written(pool, PROMPT))
    assert placed(pool, PROMPT).cached == 19


def test_a_slot_in_use_is_copied() -> None:
    pool = SlotPool(2, 128, 4)
    slot = written(pool, PROMPT)
    assert placed(pool, [*PROMPT[:10], 77, 78]) == BlockPlacement(1 - slot, 10, [CopyPositions(slot, 1 - slot, 10)])


def test_what_is_not_written_is_not_shared() -> None:
    pool = SlotPool(2, 128, 4)
    slot = placed(pool, PROMPT).slot
    pool.wrote(slot, 8)
    assert placed(pool, PROMPT).cached == 8


def test_less_than_a_block_is_shared_with_a_slot_that_is_alike() -> None:
    pool = SlotPool(3, 128, 4)
    slot = written(pool, [1, 2, 3])
    assert placed(pool, [1, 2, 3]).cached == 0
    assert placed(pool, [1, 2, 3], like=slot).cached == 2


def test_no_reuse() -> None:
    pool = SlotPool(2, 128, 4)
    pool.free(written(pool, PROMPT))
    assert placed(pool, PROMPT, reuse=False).cached == 0


def test_a_short_beginning_is_copied_so_that_a_long_talk_stays() -> None:
    pool = SlotPool(2, 128, 4)
    talk = written(pool, PROMPT)
    pool.free(talk)
    other = placed(pool, [*PROMPT[:4], 50, 51])
    assert other == BlockPlacement(1 - talk, 4, [CopyPositions(talk, 1 - talk, 4)])
    assert placed(pool, [*PROMPT, 60]) == BlockPlacement(talk, 20, [])


def test_the_slot_that_retired_longest_ago_is_given_away() -> None:
    pool = SlotPool(3, 128, 4)
    slots = [written(pool, [place] * 8) for place in range(3)]
    for slot in (slots[1], slots[2], slots[0]):
        pool.free(slot)
    assert placed(pool, [9] * 8).slot == slots[1]
    assert placed(pool, [0] * 9).slot == slots[0]
    assert placed(pool, [2] * 9).slot == slots[2]


def test_copying_from_a_slot_keeps_it_from_being_given_away() -> None:
    pool = SlotPool(3, 128, 4)
    talk, other = written(pool, PROMPT), written(pool, [9] * 20)
    pool.free(talk)
    pool.free(other)
    placed(pool, [*PROMPT[:4], 50])
    assert placed(pool, [8] * 8).slot == other


def test_a_copy_takes_the_place_of_what_was_there() -> None:
    pool = SlotPool(2, 128, 4)
    talk, other = written(pool, PROMPT), written(pool, [9] * 20)
    pool.free(other)
    assert placed(pool, [*PROMPT[:8], 50]) == BlockPlacement(other, 8, [CopyPositions(talk, other, 8)])
    pool.wrote(other, 9)
    assert pool._held[other].names == pool._held[talk].names[:2]


def test_a_prefix_of_a_slot_that_was_given_away_is_forgotten() -> None:
    pool = SlotPool(1, 128, 4)
    pool.free(written(pool, PROMPT))
    pool.free(written(pool, [9] * 8))
    assert placed(pool, PROMPT).cached == 0
    assert len(pool._holders) == 0


def test_after_in_place_reuse_the_lost_end_is_forgotten() -> None:
    pool = SlotPool(1, 128, 4)
    pool.free(written(pool, PROMPT))
    slot = written(pool, [*PROMPT[:12], 70, 71, 72, 73])
    pool.free(slot)
    assert placed(pool, PROMPT).cached == 12


def test_the_budget_counts_blocks_in_use() -> None:
    pool = SlotPool(4, 40, 4)
    slot = placed(pool, PROMPT).slot
    assert (pool.used, pool.total) == (5, 10)
    assert pool.take([7] * 20, spare=1) is None
    assert pool.take([7] * 21) is None
    placed(pool, [7] * 20)
    assert pool.grow(slot, 20) == []
    assert pool.grow(slot, 21) is None
    pool.free(slot)
    assert pool.used == 5


def test_growing_takes_a_block_at_a_time() -> None:
    pool = SlotPool(1, 40, 4)
    slot = placed(pool, [1, 2, 3]).slot
    assert [pool.grow(slot, length) is not None and pool.used for length in (4, 5, 8, 9)] == [1, 2, 2, 3]


def test_without_a_slot_there_is_no_place() -> None:
    pool = SlotPool(1, 128, 4)
    placed(pool, [1])
    assert pool.take([2]) is None


def test_a_slot_where_a_step_failed_holds_nothing() -> None:
    pool = SlotPool(1, 128, 4)
    slot = written(pool, PROMPT)
    assert pool.scrap(slot) == [Decode((slot,), (0,), (0,))]
    assert pool.used == 0
    assert placed(pool, PROMPT).cached == 0


def test_less_than_half_of_a_talk_is_copied_and_half_of_it_is_reused_in_place() -> None:
    for length, in_place in ((8, False), (9, False), (10, True)):
        pool = SlotPool(2, 128, 4)
        talk = written(pool, PROMPT)
        pool.free(talk)
        assert (placed(pool, [*PROMPT[:length], 50]).slot == talk) is in_place, length


def test_what_is_kept_in_place_is_shared_before_more_is_written() -> None:
    pool = SlotPool(2, 128, 4)
    talk = written(pool, PROMPT)
    pool.free(talk)
    assert placed(pool, [*PROMPT[:12], 50]) == BlockPlacement(talk, 12, [])
    assert placed(pool, [*PROMPT[:12], 60]) == BlockPlacement(1 - talk, 12, [CopyPositions(talk, 1 - talk, 12)])


def test_what_is_forgotten_is_not_found() -> None:
    pool = SlotPool(2, 128, 4)
    pool.free(written(pool, PROMPT))
    pool.forget()
    assert placed(pool, [*PROMPT, 5]).cached == 0
    assert placed(pool, [*PROMPT, 5]).before == []
    assert pool.take([1]) is None
