"""Places in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from msx_llm.kernels.ascend.blocks import ALWAYS, NEVER, BlockTables, block_size, nowhere
from msx_sdk.errors import HandlerLoadError


def tables() -> BlockTables:
    made = BlockTables(slots=3, context=40, tokens=64, size=16)
    made.assign(0, [3, 1])
    made.assign(2, [4, 2, 1])
    return made


def test_there_are_blocks_for_all_tokens_and_one_that_belongs_to_nobody() -> None:
    assert tables().blocks == 1 + 4
    assert BlockTables(slots=1, context=100, tokens=10, size=16).blocks == 1 + 7
    assert BlockTables(slots=4, context=100, tokens=400, size=128).blocks == 1 + 4


def test_tokens_of_several_texts_lie_side_by_side() -> None:
    arrays = tables().places([2, 0], [30, 0], [4, 3])
    assert arrays.positions.tolist() == [30, 31, 32, 33, 0, 1, 2]
    assert arrays.slots.tolist() == [2 * 16 + 14, 2 * 16 + 15, 16, 17, 3 * 16, 3 * 16 + 1, 3 * 16 + 2]
    assert arrays.tables.tolist() == [[4, 2, 1], [3, 1, 0]]
    assert (arrays.lengths.tolist(), arrays.q_lengths.tolist()) == ([34, 3], [4, 3])
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}


def test_tables_are_as_wide_as_the_longest_text_of_the_step() -> None:
    assert tables().places([0], [15], [1]).tables.shape == (1, 1)
    assert tables().places([0], [16], [1]).tables.shape == (1, 2)


def test_a_step_that_keeps_nothing() -> None:
    arrays = nowhere(tables().places([2], [17], [2]))
    assert (arrays.slots.tolist(), arrays.tables.tolist(), arrays.lengths.tolist()) == ([-1, -1], [[0, 0]], [19])


def test_a_decoding_step_that_is_filled_up() -> None:
    """Its shapes depend on its size alone."""
    arrays = tables().filled([2, 0], [20, 3], 4)
    assert arrays.tables.tolist() == [[4, 2, 1], [3, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert (arrays.positions.tolist(), arrays.slots.tolist()) == ([20, 3, 0, 0], [2 * 16 + 4, 3 * 16 + 3, -1, -1])
    assert (arrays.lengths.tolist(), arrays.q_lengths.tolist()) == ([21, 4, 1, 1], [1] * 4)
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}


def test_two_tokens_more_that_keep_nothing() -> None:
    """They are of a text of their own, where each has one token and attention would ignore the mask."""
    arrays = tables().paired(tables().places([2, 0], [20, 3], [1, 1]))
    assert arrays.tables.tolist() == [[4, 2], [3, 1], [0, 0]]
    assert (arrays.positions.tolist(), arrays.slots.tolist()) == ([20, 3, 1, 2], [2 * 16 + 4, 3 * 16 + 3, -1, -1])
    assert (arrays.lengths.tolist(), arrays.q_lengths.tolist()) == ([21, 4, 3], [1, 1, 2])
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}


def test_sinks_lie_in_a_block_before_every_text() -> None:
    made = BlockTables(slots=2, context=40, tokens=64, size=16, sinks=True)
    made.assign(1, [3, 1])
    arrays = made.places([1], [15], [2])
    assert (arrays.positions.tolist(), arrays.slots.tolist()) == ([15, 16], [3 * 16 + 15, 16])
    assert (arrays.tables.tolist(), arrays.lengths.tolist()) == ([[0, 3, 1]], [16 + 17])
    assert made.paired(arrays).lengths.tolist() == [16 + 17, 16 + 3]
    reach = made.reach(3)
    assert (reach[0], set(reach[1:16].tolist()), reach[16:].tolist()) == (ALWAYS, {NEVER}, list(range(32)))
    assert {array.dtype for array in arrays} == {np.dtype(np.int32)}


@pytest.mark.parametrize(("head", "size"), [(16, 128), (64, 128), (128, 128), (144, 64), (192, 64), (256, 64)])
def test_wide_heads_have_smaller_blocks(head: int, size: int) -> None:
    assert block_size(head) == size


@pytest.mark.parametrize("head", [8, 72 + 4, 272])
def test_heads_that_no_kernel_takes(head: int) -> None:
    with pytest.raises(
        HandlerLoadError, match=f"head_dim: {head}: attention on Ascend NPUs needs a multiple of 16, 256"
    ):
        block_size(head)
