"""The fewest tokens of a text, without tokenizing it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from msx_llm.text.widest import WidestToken
from tests.llm.text.dividing_tokenizers import LLAMA3, bytes_of, gpt2, splitting
from tests.llm.tokenizers_of_tests import byte_level, pieces, word_pieces


def widest(tokenizer: Tokenizer) -> WidestToken:
    return WidestToken.of(json.loads(tokenizer.to_str()))


def test_of_byte_level_bpe() -> None:
    assert widest(byte_level()) == WidestToken(len("<think>"), False)
    assert widest(byte_level()).least("a" * 71) == 11
    assert widest(byte_level()).least("é" * 71) == 21
    assert widest(byte_level()).least("") == 0


def test_a_normal_form_changes_no_ascii() -> None:
    found = widest(splitting(LLAMA3, normalizer=normalizers.NFC()))
    assert found.ascii
    assert found.least("a" * 1000) > 0
    assert found.least("é" * 1000) == 0


@pytest.mark.parametrize("other", [pieces, word_pieces])
def test_of_others_nothing_is_known(other: Callable[[], Tokenizer]) -> None:
    assert widest(other()).least("a" * 1000) == 0


def without_a_byte() -> Tokenizer:
    found = json.loads(byte_level().to_str())
    found["model"]["vocab"]["another"] = found["model"]["vocab"].pop("!")
    return Tokenizer.from_str(json.dumps(found))


def removing() -> Tokenizer:
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    splits: Any = [pre_tokenizers.Split(Regex(r"\s+"), "removed"), last]
    return bytes_of(pre_tokenizers.Sequence(splits))


def with_normalizer(normalizer: Any) -> Tokenizer:
    tokenizer = gpt2()
    tokenizer.normalizer = normalizer
    return tokenizer


def with_added(**options: bool) -> Tokenizer:
    tokenizer = gpt2()
    tokenizer.add_tokens([AddedToken("<x>", **options)])
    return tokenizer


@pytest.mark.parametrize(
    "tokenizer",
    [
        without_a_byte(),
        removing(),
        with_normalizer(normalizers.Strip()),
        with_normalizer(normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])),
        with_added(lstrip=True),
        with_added(rstrip=True),
    ],
)
def test_where_some_of_the_text_may_get_lost(tokenizer: Tokenizer) -> None:
    assert widest(tokenizer).least("a" * 1000) == 0
