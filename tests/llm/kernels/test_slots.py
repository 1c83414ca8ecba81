"""Rows of contiguous slots."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")

HEADS, LENGTH = 2, 128
SLOT = HEADS * LENGTH
"""Rows of a slot."""


def places(slots: list[int | None], positions: list[list[int]], context: int) -> tuple[list[int], list[int]]:
    from msx_llm.kernels.cpu.slots import SlotLayout

    rows, seen = SlotLayout(3, 100, HEADS).places(slots, np.array(positions), context)
    assert rows.dtype == seen.dtype == np.int32
    return rows.tolist(), seen.tolist()


def test_contexts_are_rounded_up() -> None:
    from msx_llm.kernels.cpu.slots import SlotLayout

    layout = SlotLayout(3, 100, HEADS)
    assert (layout.length, layout.size) == (LENGTH, (3 + 1) * SLOT)
    assert [layout.extent(context) for context in (1, 64, 65)] == [64, 64, 128]


def test_one_token_each_is_written_to_both_heads() -> None:
    rows, seen = places([2, 0], [[5], [99]], 64)
    assert rows == [2 * SLOT + 5, 2 * SLOT + LENGTH + 5, 99, LENGTH + 99]
    heads = {2 * SLOT: 5, 2 * SLOT + LENGTH: 5, 0: 99, LENGTH: 99}
    assert seen == [first + min(position, last) for first, last in heads.items() for position in range(64)]


def test_a_chunk_reads_up_to_its_own_last_token() -> None:
    _, seen = places([1], [[3, 4, -1]], 64)
    assert seen == [first + min(position, 4) for first in (SLOT, SLOT + LENGTH) for position in range(64)]
    _, seen = places([None], [[-1]], 64)
    assert {*seen} == {3 * SLOT, 3 * SLOT + LENGTH}


def test_padding_is_written_to_a_slot_of_its_own() -> None:
    rows, _ = places([1, None], [[7], [-1]], 64)
    assert rows == [SLOT + 7, SLOT + LENGTH + 7, 3 * SLOT, 3 * SLOT + LENGTH]
    rows, _ = places([1], [[98, 99, -1]], 128)  # the end of a chunk
    assert rows[4:] == [3 * SLOT, 3 * SLOT + LENGTH]


def test_rows_of_a_prefix_are_head_by_head() -> None:
    from msx_llm.kernels.cpu.slots import SlotLayout

    rows = SlotLayout(3, 100, HEADS).rows(1, 3).tolist()
    assert rows == [SLOT, SLOT + 1, SLOT + 2, SLOT + LENGTH, SLOT + LENGTH + 1, SLOT + LENGTH + 2]
