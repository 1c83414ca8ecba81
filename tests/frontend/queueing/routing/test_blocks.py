"""The beginnings of prompts, as hashes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.job import Beginning, Text
from msx_frontend.queueing.routing.blocks import ENDS, FIRST, GROWTH, LONGEST, TOKEN, blocks_of


def blocks(text: Text, of: str = "") -> list[int]:
    return blocks_of(Beginning(of, text))


def common(one: list[int], other: list[int]) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_a_longer_prompt_has_the_blocks_of_its_beginning() -> None:
    text = "".join(map(str, range(3000)))
    for length in (0, FIRST - 1, FIRST, 700, 9000):
        short = blocks(text[:length])
        assert short == blocks(text)[: len(short)]
    assert (len(blocks(text[: FIRST - 1])), len(blocks(text[:FIRST]))) == (0, 1)


@given(st.integers(0, 5000))
def test_what_differs_at_a_place_differs_from_its_block_on(place: int) -> None:
    text = "a" * 5001
    other = text[:place] + "b" + text[place + 1 :]
    assert common(blocks(text), blocks(other)) == sum(end <= place for end in ENDS if end <= len(text))


def test_blocks_grow_so_that_their_number_is_bounded() -> None:
    assert len(ENDS) < 64
    assert max(ENDS) <= LONGEST
    assert all(end - before <= max(FIRST, before // GROWTH) for before, end in zip((0, *ENDS), ENDS, strict=False))
    assert len(blocks("x" * (3 * LONGEST))) == len(ENDS)


def test_texts_token_ids_and_bytes() -> None:
    ids = tuple(range(1000, 1400))
    assert common(blocks(ids), blocks((*ids[:-1], 0))) == sum(end <= 399 * TOKEN for end in ENDS)
    assert len(blocks(ids)) == sum(end <= 400 * TOKEN for end in ENDS)
    assert blocks(b"x" * 100) == blocks(b"x" * 100)


def test_another_adapter_has_computed_nothing_of_it() -> None:
    assert common(blocks("x" * 500, "one"), blocks("x" * 500, "other")) == 0
