from __future__ import annotations

import pytest

from msx_llm.blocks import STRIDE, blocks_for, common


@pytest.mark.parametrize("place", [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 2 * STRIDE + 5, 3 * STRIDE - 1])
def test_texts_are_alike_up_to_the_first_token_that_differs(place: int) -> None:
    one = list(range(3 * STRIDE))
    other = [*one]
    other[place] = -1
    assert common(one, other, len(one)) == place
    assert common(one, other, place) == place


def test_a_part_of_a_block_is_a_block() -> None:
    assert [blocks_for(length, 4) for length in (0, 1, 4, 5)] == [0, 1, 1, 2]
