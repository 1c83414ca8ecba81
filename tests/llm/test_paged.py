from __future__ import annotations

from msx_llm.blocks import BlockPlacement
from msx_llm.paged import SCRATCH, PagedPool
from msx_llm.step import AssignBlocks, Decode

PROMPT = list(range(10))


def placed(pool: PagedPool, tokens: list[int], reuse: bool = True) -> BlockPlacement:
    placement = pool.take(tokens, reuse=reuse)
    assert placement is not None
    return placement


def written(pool: PagedPool, tokens: list[int]) -> int:
    slot = placed(pool, tokens).slot
    pool.wrote(slot, len(tokens))
    return slot


def table(placement: BlockPlacement) -> tuple[int, ...]:
    (step,) = placement.before
    assert isinstance(step, AssignBlocks)
    assert step.slot == placement.slot
    return step.blocks


def test_sequences_share_the_whole_blocks_of_a_prefix() -> None:
    pool = PagedPool(4, 17, 4)
    first = placed(pool, PROMPT)
    pool.wrote(first.slot, 10)
    second = placed(pool, [*PROMPT[:9], 70])
    assert second.cached == 8
    assert table(second)[:2] == table(first)[:2]
    assert table(second)[2] != table(first)[2]
    assert pool.used == 4


def test_what_is_forgotten_is_not_found() -> None:
    pool = PagedPool(4, 17, 4)
    pool.free(written(pool, PROMPT))
    again = placed(pool, PROMPT)
    assert again.cached == 8
    pool.free(again.slot)
    pool.forget()
    assert placed(pool, PROMPT).cached == 0


def test_the_last_token_is_always_computed() -> None:
    pool = PagedPool(4, 17, 4)
    written(pool, PROMPT[:8])
    assert placed(pool, PROMPT[:8]).cached == 4


def test_a_shared_block_stays_until_its_last_user_leaves() -> None:
    pool = PagedPool(4, 17, 4)
    first, second = written(pool, PROMPT), written(pool, PROMPT)
    pool.free(first)
    assert pool.used == 3
    pool.free(second)
    assert pool.used == 0
    assert placed(pool, PROMPT).cached == 8


def test_kept_blocks_are_given_away_when_room_is_wanted_the_oldest_first() -> None:
    pool = PagedPool(4, 7, 4)
    pool.free(written(pool, [1] * 8))
    pool.free(written(pool, [2] * 8))
    pool.free(written(pool, [3] * 16))
    assert placed(pool, [1] * 9, reuse=True).cached == 0
    assert placed(pool, [3] * 9).cached == 8


def test_the_beginning_of_a_prefix_outlives_its_end() -> None:
    pool = PagedPool(4, 5, 4)
    pool.free(written(pool, [*PROMPT, 10, 11]))
    pool.free(written(pool, [50] * 8))
    assert placed(pool, PROMPT).cached == 8


def test_blocks_without_a_name_are_given_away_first() -> None:
    pool = PagedPool(4, 5, 4)
    pool.free(written(pool, PROMPT[:9]))  # 1 and 2 have a name, 3 has none
    assert table(placed(pool, [9] * 8)) == (3, 4)
    assert placed(pool, PROMPT[:8]).cached == 4


def test_no_room_no_place() -> None:
    pool = PagedPool(2, 5, 4)
    assert pool.total == 4
    assert pool.take([1] * 17) is None
    assert pool.take([1] * 16, spare=1) is None
    placed(pool, [1] * 16)
    assert pool.take([2]) is None


def test_cached_blocks_that_are_wanted_leave_no_room() -> None:
    pool = PagedPool(2, 5, 4)
    pool.free(written(pool, PROMPT[:8]))
    placed(pool, [9] * 4)
    assert pool.take([*PROMPT[:8], *[7] * 8]) is None
    assert placed(pool, [*PROMPT[:8], 7]).cached == 8


def test_growing_assigns_the_new_block() -> None:
    pool = PagedPool(2, 5, 4)
    first = placed(pool, [1, 2, 3])
    assert pool.grow(first.slot, 4) == []
    assert pool.grow(first.slot, 5) == [AssignBlocks(first.slot, (*table(first), 2))]
    assert pool.grow(first.slot, 17) is None
    assert pool.used == 2


def test_a_trial_touches_no_block_of_anyone() -> None:
    pool = PagedPool(2, 5, 4)
    slot = written(pool, PROMPT)
    assert pool.scrap(slot) == [AssignBlocks(slot, (SCRATCH,)), Decode((slot,), (0,), (0,))]
    assert SCRATCH not in table(placed(pool, [3] * 16))
