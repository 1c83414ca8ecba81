"""Texts and token ids as the network gets them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.input_prompts import InputPrompts
from msx_llm.embedding.inputs import InputTokenizer
from msx_llm.text import Tokenizer
from msx_llm.text.pieces import PIECE
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, EmbedRequest
from tests.llm.embedding.checkpoints import VOCABULARY, tokenizer
from tests.llm.text.watched import tokenized_texts
from tests.llm.tokenizers_of_tests import byte_level

COUNT = len(VOCABULARY)


def inputs(longest: int = 12, **options: Any) -> InputTokenizer:
    return InputTokenizer(Tokenizer(tokenizer()), longest, COUNT, **options)


def words(tokens: list[int]) -> str:
    return " ".join(VOCABULARY[token] for token in tokens)


def refusal(request: EmbedRequest) -> str:
    with pytest.raises(InvalidInput) as raised:
        inputs().tokens(request)
    return raised.value.message


def test_a_text_is_framed_by_its_special_tokens() -> None:
    assert words(inputs().tokens(EmbedRequest(input="The dogs"))) == "[CLS] the dog ##s [SEP]"


def test_truncation_and_padding_of_the_file_are_off() -> None:
    assert len(inputs(64).tokens(EmbedRequest(input="cat " * 30))) == 32


def test_what_is_cut_off_is_text() -> None:
    assert words(inputs().tokens(EmbedRequest(input="cat " * 30, truncate=5))) == "[CLS] cat cat cat [SEP]"
    assert words(inputs().tokens(EmbedRequest(input="cat", truncate=5))) == "[CLS] cat [SEP]"


PROMPTS = InputPrompts({"query": "the ", "document": "dogs: "}, "query")


def test_a_prompt_stands_before_the_text_and_is_cut_with_it() -> None:
    own = inputs(prompts=InputPrompts({"query": "the dogs "}))
    assert words(own.tokens(EmbedRequest(input="cat", prompt_name="query"))) == "[CLS] the dog ##s cat [SEP]"
    assert words(own.tokens(EmbedRequest(input="cat", prompt_name="query", truncate=4))) == "[CLS] the dog [SEP]"
    assert words(own.tokens(EmbedRequest(input="cat"))) == "[CLS] cat [SEP]"
    assert words(inputs(prompts=PROMPTS).tokens(EmbedRequest(input="cat"))) == "[CLS] the cat [SEP]"


@pytest.mark.parametrize(
    ("prompts", "request_", "reason"),
    [
        (PROMPTS, EmbedRequest(input="cat", prompt_name="q"), "no prompt 'q'; it has document, query"),
        (InputPrompts(), EmbedRequest(input="cat", prompt_name="q"), "no prompt 'q'; it has none"),
        (PROMPTS, EmbedRequest(input=(2, 7), prompt_name="query"), "only before a text, not before token ids"),
    ],
)
def test_prompts_that_there_are_not(prompts: InputPrompts, request_: EmbedRequest, reason: str) -> None:
    with pytest.raises(InvalidInput, match=f"prompt_name: .*{reason}"):
        inputs(prompts=prompts).tokens(request_)


def test_token_ids_are_taken_as_they_are() -> None:
    assert inputs().tokens(EmbedRequest(input=(2, 7, 3))) == [2, 7, 3]
    assert inputs().tokens(EmbedRequest(input=tuple(range(12)), truncate=2)) == [0, 1]


def test_the_beginning_is_cut() -> None:
    left = EmbedRequest(input="cat cat dog mat", truncate=4, truncate_left=True)
    assert words(inputs().tokens(left)) == "[CLS] dog mat [SEP]"
    assert inputs().tokens(EmbedRequest(input=tuple(range(12)), truncate=2, truncate_left=True)) == [10, 11]


def test_a_model_may_want_lower_case() -> None:
    plain = Tokenizer(tokenizer(lowercase=False))
    assert words(InputTokenizer(plain, 9, 99).tokens(EmbedRequest(input="CAT"))) == "[CLS] [UNK] [SEP]"
    assert words(InputTokenizer(plain, 9, 99, lower_case=True).tokens(EmbedRequest(input="CAT"))) == "[CLS] cat [SEP]"


def test_a_tokenizer_may_know_more_tokens_than_the_network() -> None:
    with pytest.raises(InvalidInput, match="input: 6 is not a token id of this model, which has 0 to 5"):
        InputTokenizer(Tokenizer(tokenizer()), 12, 6).tokens(EmbedRequest(input="the cat"))


TOO_LONG = (
    "input: This model's maximum context length is 12 tokens (maxInputTokens); the input has 13. Input "
    "tokens exceed the configured limit: shorten or truncate it."
)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (EmbedRequest(input="cat " * 11), TOO_LONG),
        (EmbedRequest(input=(1,) * 13), TOO_LONG),
        (EmbedRequest(input=(1, COUNT)), f"input: {COUNT} is not a token id of this model, which has 0 to {COUNT - 1}"),
        (EmbedRequest(input=(-1,)), f"input: -1 is not a token id of this model, which has 0 to {COUNT - 1}"),
        (EmbedRequest(input=()), "input: expected a text of at least one token"),
        (EmbedRequest(input="cat", truncate=13), "truncate: 13 is more than maxInputTokens, 12"),
        (EmbedRequest(input="cat", truncate=2), "truncate: expected at least 3: 2 are special tokens"),
    ],
)
def test_refusals_name_the_parameter_and_its_limit(request_: EmbedRequest, text: str) -> None:
    assert refusal(request_) == text


@pytest.mark.parametrize("left", [False, True])
def test_a_very_long_text_is_cut_before_it_is_tokenized(monkeypatch: pytest.MonkeyPatch, left: bool) -> None:
    seen = tokenized_texts(monkeypatch)
    found = inputs().tokens(EmbedRequest(input="dogs " + "cat " * 20_000 + "mat", truncate=4, truncate_left=left))
    assert words(found) == ("[CLS] cat mat [SEP]" if left else "[CLS] dog ##s [SEP]")
    assert sum(map(len, seen)) < 2 * PIECE


def test_a_text_that_was_counted_is_refused_with_its_size() -> None:
    assert "the input has 62. Input tokens exceed" in refusal(EmbedRequest(input="cat " * 60))


def test_a_very_long_text_is_tokenized_as_far_as_to_see_that_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tokenized_texts(monkeypatch)
    assert "the input has more than 12. Input tokens exceed" in refusal(EmbedRequest(input="cat " * 20_000))
    assert sum(map(len, seen)) < 2 * PIECE


def test_a_text_that_is_too_long_for_certain_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    own = InputTokenizer(Tokenizer(byte_level()), 12, 300, lower_case=True)
    seen = tokenized_texts(monkeypatch)
    with pytest.raises(ContextLengthExceeded, match="the input has more than 12"):
        own.tokens(EmbedRequest(input="x" * 1_000))
    assert seen == []
    own.check_size(EmbedRequest(input="x" * 1_000, truncate=12))
    own.check_size(EmbedRequest(input="\u212a" * 1_000))  # its small letter is one byte
