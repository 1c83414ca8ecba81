"""A tokenizer with an unknown part is not given texts in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from msx_llm.text.divides import OTHERS, WORDS, alternatives, divides
from tests.llm.text.dividing_tokenizers import LLAMA3, bert, bytes_of, gpt2, splitting, unigram
from tests.llm.tokenizers_of_tests import pieces

Change = Callable[[Tokenizer], object]
Kind = Callable[[], Tokenizer]


def spec(tokenizer: Tokenizer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tokenizer.to_str())
    return found


def setting(name: str, value: Any) -> Change:
    return lambda tokenizer: setattr(tokenizer, name, value)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (gpt2, setting("normalizer", normalizers.Strip())),
        (gpt2, setting("normalizer", normalizers.Sequence([normalizers.NFC(), normalizers.Strip()]))),
        (gpt2, setting("normalizer", normalizers.Replace("a b", "c"))),
        (gpt2, setting("normalizer", normalizers.Replace(Regex("."), "c"))),
        (gpt2, setting("normalizer", normalizers.Prepend("▁"))),
        (gpt2, setting("pre_tokenizer", pre_tokenizers.ByteLevel(use_regex=False))),
        (gpt2, setting("pre_tokenizer", pre_tokenizers.CharDelimiterSplit("-"))),
        (gpt2, setting("pre_tokenizer", None)),
        (gpt2, lambda tokenizer: tokenizer.add_tokens(["two words"])),
        (gpt2, lambda tokenizer: tokenizer.add_tokens(["ends with a letter"])),
        (gpt2, lambda tokenizer: tokenizer.add_tokens(["ＡＢＣ"])),
        (gpt2, lambda tokenizer: tokenizer.add_tokens([AddedToken("word", rstrip=True)])),
        (gpt2, lambda tokenizer: tokenizer.add_tokens([" "])),
        (gpt2, lambda tokenizer: setattr(tokenizer.model, "dropout", 0.1)),
        (pieces, lambda tokenizer: tokenizer.add_tokens([AddedToken("<x▁y>", normalized=True)])),
        (pieces, setting("normalizer", None)),
        (bert, setting("pre_tokenizer", pre_tokenizers.Punctuation())),
        (unigram, setting("pre_tokenizer", pre_tokenizers.Metaspace(split=False))),
        (unigram, setting("pre_tokenizer", pre_tokenizers.Metaspace(replacement="_"))),
    ],
)
def test_what_is_not_known_is_not_divided(kind: Kind, change: Change) -> None:
    tokenizer = kind()
    assert divides(spec(tokenizer))
    change(tokenizer)
    assert not divides(spec(tokenizer))


@pytest.mark.parametrize("pattern", [LLAMA3 + "|a b", r"\p{L}+|.", r"\w+ \w+", LLAMA3.replace(r"\p{L}+", r"\p{L}+ ?")])
def test_a_pattern_with_an_alternative_that_is_not_known(pattern: str) -> None:
    assert not divides(spec(splitting(pattern)))


def test_words_that_no_pattern_ends() -> None:
    assert not divides(spec(splitting(r"\p{N}{1,3}")))


@pytest.mark.parametrize("behavior", ["merged_with_next", "contiguous", "removed"])
def test_what_a_pattern_finds_stays_by_itself(behavior: Any) -> None:
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(LLAMA3), behavior)
    assert not divides(spec(bytes_of(pre_tokenizers.Sequence([split, last]))))


@pytest.mark.parametrize("token", ["a▁", "a▁b", "x a"])
def test_a_token_that_lies_across_two_words(token: str) -> None:
    found = spec(pieces())
    assert divides(found)
    found["model"]["vocab"][token] = 9_999
    assert not divides(found)


@pytest.mark.parametrize("change", [{"ignore_merges": True}, {"end_of_word_suffix": "</w>"}, {"type": "Unigram"}])
def test_a_model_of_whole_texts(change: dict[str, Any]) -> None:
    found = spec(pieces())
    assert not divides({**found, "model": {**found["model"], **change}})


def test_special_tokens_with_sentencepieces_space_inside() -> None:
    tokenizer = gpt2()
    tokenizer.add_special_tokens(["<｜begin▁of▁sentence｜>"])
    assert divides(spec(tokenizer))


def test_the_alternatives_of_a_pattern() -> None:
    assert list(alternatives(r"(?i:a|b)|[|]x|\||c")) == ["(?i:a|b)", "[|]x", r"\|", "c"]
    assert {*alternatives(LLAMA3)} <= WORDS | OTHERS
