"""Pairs of texts as tokens, against Hugging Face's own truncation."""

from __future__ import annotations

import pytest

from msx_backend.llm.text import Tokenizer
from tests.unit.backend.llm.embedding.checkpoints import tokenizer

TEXTS = ("cat", "the cat sat on a mat", "dogs " * 9)


@pytest.mark.parametrize("first", TEXTS)
@pytest.mark.parametrize("second", TEXTS)
@pytest.mark.parametrize("most", [5, 6, 9, 14, None])
def test_pairs_are_those_of_hugging_face(first: str, second: str, most: int | None) -> None:
    theirs = tokenizer()
    theirs.no_padding()
    if most is None:
        theirs.no_truncation()
    else:
        theirs.enable_truncation(most, strategy="longest_first")
    expected = theirs.encode(first, second)
    assert Tokenizer(tokenizer()).pair(first, second, most) == (expected.ids, expected.type_ids)


@pytest.mark.parametrize("most", [6, 9, 14])
def test_pairs_that_are_cut_at_their_beginning(most: int) -> None:
    theirs = tokenizer()
    theirs.no_padding()
    theirs.enable_truncation(most, strategy="longest_first", direction="left")
    expected = theirs.encode(*TEXTS[1:])
    assert Tokenizer(tokenizer()).pair(*TEXTS[1:], most, left=True) == (expected.ids, expected.type_ids)


def test_what_is_kept_at_the_end() -> None:
    made = Tokenizer(tokenizer())
    ids = made.encode("the cat sat on a mat", add_special_tokens=False)
    assert made.ending("the cat sat on a mat", 5) == (ids, 2)
    assert made.ending("the cat sat on a mat", 5, 4) == ([*ids[:2], *ids[-2:]], 2)
    assert made.ending("the cat sat on a mat", 5, 1) == (ids[-2:], 2)
