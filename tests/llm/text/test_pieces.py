"""A text that is tokenized in pieces has the tokens of the whole text, with every kind of tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_llm.text import Tokenizer
from msx_llm.text.pairs import longest_first
from msx_llm.text.pieces import pieces_of, place_before
from tests.llm.text.dividing_tokenizers import KINDS, WORDS, tokenizer_of

PIECE = 6
Checked = Callable[..., None]

fragments = st.one_of(
    st.sampled_from(
        [
            *WORDS.split(" "),
            "a b",
            "A b",
            " ",
            "  ",
            "a",
            "<s>",
            "<|im_end|>",
            "<think>",
            "[CLS]",
            "▁",
            "\u0301",
            "'s x",
        ]
    ),
    st.text(max_size=4),
    st.text("abAB ▁\u0301'1\n", max_size=8),
).filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))
texts = st.lists(fragments, max_size=20).flatmap(
    lambda parts: st.sampled_from(["", " "]).map(lambda it: it.join(parts))
)
some = settings(max_examples=settings().max_examples // 8)
"""There are many kinds."""


@cache
def tokenizer(kind: str) -> Tokenizer:
    return Tokenizer(tokenizer_of(kind), piece=PIECE)


def ids(kind: str, text: str) -> list[int]:
    found: list[int] = tokenizer_of(kind).encode(text, add_special_tokens=False).ids
    return found


@given(texts)
def test_pieces_are_the_text(text: str) -> None:
    found = pieces_of(text, PIECE)
    assert "".join(found) == text
    assert all(len(piece) > PIECE for piece in found[:-1])
    assert all(piece[0] == " " and piece[1].isascii() and piece[1].isalpha() for piece in found[1:])


@given(texts, st.integers(0, 100))
def test_the_place_before(text: str, place: int) -> None:
    found = place_before(text, place, PIECE)
    assert found <= min(place, len(text))
    assert found == 0 or (text[found] == " " and found >= place - PIECE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_divided(kind: str) -> None:
    text = "cat on a mat " * 9
    assert len(tokenizer(kind)._pieces(text)) > 5


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts, most=st.integers(1, 30), left=st.booleans())
@some
def test_some_tokens_are_those_of_the_whole_text(kind: str, text: str, most: int, left: bool) -> None:
    found, whole = tokenizer(kind).some(text, most, left)
    expected = ids(kind, text)
    assert whole or len(found) >= most
    assert found == (expected[len(expected) - len(found) :] if left else expected[: len(found)])
    assert not whole or found == expected


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts, most=st.integers(1, 30))
@some
def test_a_part_has_the_first_tokens(kind: str, text: str, most: int) -> None:
    assert ids(kind, tokenizer(kind).part(text, most))[:most] == ids(kind, text)[:most]


@pytest.mark.parametrize("kind", KINDS)
@given(first=texts, second=texts, most=st.integers(1, 30), left=st.booleans())
@some
def test_a_pair_is_cut_as_before(kind: str, first: str, second: str, most: int, left: bool) -> None:
    raw = tokenizer_of(kind)
    expected: list[Any] = [raw.encode(text, add_special_tokens=False) for text in (first, second)]
    room = max(most - raw.num_special_tokens_to_add(is_pair=True), 0)
    for part, size in zip(expected, longest_first(len(expected[0]), len(expected[1]), room), strict=True):
        part.truncate(size, direction="left" if left else "right")
    whole = raw.post_process(*expected)
    assert tokenizer(kind).pair(first, second, most, left) == (whole.ids, whole.type_ids)


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts, share=st.floats(0, 1), most=st.integers(1, 30))
@some
def test_an_ending_is_cut_as_before(kind: str, text: str, share: float, most: int) -> None:
    kept = int(len(text) * share)
    encoding = tokenizer_of(kind).encode(text, add_special_tokens=False)
    end = sum(begin >= len(text) - kept for begin, _ in encoding.offsets)
    body, over = len(encoding.ids) - end, max(len(encoding.ids) - most, 0)
    expected = encoding.ids[: max(body - over, 0)] + encoding.ids[body:]
    assert tokenizer(kind).ending(text, kept, most) == (expected, end)


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
@some
def test_a_text_has_the_fewest_tokens_that_are_told_at_least(kind: str, text: str) -> None:
    assert tokenizer(kind).least(text) <= len(ids(kind, text))
