"""Pairs of texts as tokens, against Hugging Face's own truncation."""

from __future__ import annotations

import msgspec
import pytest

from msx_core.chat_templates.pair_template import PairTemplate
from msx_llm.classification.inputs import PairTokenizer
from msx_llm.text import ChatTemplate, Tokenizer
from msx_llm.text.pieces import PIECE
from msx_sdk.generation import ClassifyRequest, ContextLengthExceeded
from tests.llm.embedding.checkpoints import tokenizer
from tests.llm.text.watched import tokenized_texts
from tests.llm.tokenizers_of_tests import byte_level

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


LONG = "cat " * 20_000
WRITTEN = "{% for m in messages %}{{ m.role }} {{ m.content }}{% endfor %} mat"


def pairs(template: bool = False) -> PairTokenizer:
    written = PairTemplate(ChatTemplate({"default": WRITTEN}, {})) if template else None
    return PairTokenizer(Tokenizer(tokenizer()), 12, 99, written)


@pytest.mark.parametrize("template", [False, True])
@pytest.mark.parametrize("texts", [("dogs", LONG), (LONG, "dogs"), (LONG, LONG)])
def test_very_long_pairs_are_cut_before_they_are_tokenized(
    monkeypatch: pytest.MonkeyPatch, template: bool, texts: tuple[str, str]
) -> None:
    seen = tokenized_texts(monkeypatch)
    shorter = [text[:800] for text in texts]
    request, same = (ClassifyRequest(input=one, pair=two, truncate=9) for one, two in (texts, shorter))
    assert pairs(template).tokens(request) == pairs(template).tokens(same)
    assert sum(map(len, seen)) < 8 * PIECE


@pytest.mark.parametrize("template", [False, True])
@pytest.mark.parametrize("texts", [("dogs", LONG), (LONG, "dogs")])
def test_very_long_pairs_are_tokenized_as_far_as_to_see_that_they_are_too_long(
    monkeypatch: pytest.MonkeyPatch, template: bool, texts: tuple[str, str]
) -> None:
    seen = tokenized_texts(monkeypatch)
    with pytest.raises(ContextLengthExceeded, match="the input has more than 12"):
        pairs(template).tokens(ClassifyRequest(input=texts[0], pair=texts[1]))
    assert sum(map(len, seen)) < 2 * PIECE


def test_pairs_that_are_too_long_for_certain_are_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    own = PairTokenizer(Tokenizer(byte_level()), 200, 300)
    seen = tokenized_texts(monkeypatch)
    request = ClassifyRequest(input="x" * 1_000, pair="y" * 1_000)
    with pytest.raises(ContextLengthExceeded, match="the input has more than 200"):
        own.check_size(request)
    with pytest.raises(ContextLengthExceeded, match="the input has more than 200"):
        own.check_size(ClassifyRequest(input="x" * 2_000))
    own.check_size(msgspec.structs.replace(request, truncate=9))
    assert seen == []
