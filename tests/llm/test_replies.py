from __future__ import annotations

from typing import Any

import pytest

from msx_core.generation.wire import decode
from msx_llm.replies import ReplyText, ReplyTokens, RequestDeltas, TextEnd
from msx_llm.sampling import Chosen
from msx_llm.text import TextStream
from msx_sdk.generation import GenerateDelta
from tests.llm.fakes import END, make_tokenizer, request


@pytest.mark.parametrize(
    ("end", "keep_stop", "last_is_text"),
    [
        (None, False, True),
        (TextEnd("length"), False, True),
        (TextEnd("eos"), False, False),
        (TextEnd("eos", spoken=True), False, True),  # a constraint is complete with it
        (TextEnd("stop", 1), False, False),
        (TextEnd("stop", 1), True, True),
    ],
)
def test_whether_the_last_token_belongs_to_the_text(end: TextEnd | None, keep_stop: bool, last_is_text: bool) -> None:
    tokenizer = make_tokenizer()
    text = ReplyText(TextStream(tokenizer, ()), None)
    text.read(4, None, keep_stop)
    text.read(5, end, keep_stop)
    told = "".join(text.parts)
    assert told.endswith(tokenizer.decode([5], True)) == last_is_text
    assert told


def bytes_of(text: str) -> list[int]:
    """One token each."""
    return make_tokenizer().encode(text, add_special_tokens=False)


def deltas_of(tokens: list[int], **params: Any) -> tuple[RequestDeltas, list[GenerateDelta], int]:
    """The deltas of a text, shared ones where they are, and how many those were."""
    tokenizer, asked = make_tokenizer(), request([1], **params)
    stream = TextStream(tokenizer, asked.params.stop)
    replies = RequestDeltas(
        asked, [ReplyText(stream, None) for _ in range(asked.params.n)], ReplyTokens(tokenizer), [1]
    )
    made, shared = list[GenerateDelta](), 0
    for token in tokens:
        if found := replies.shared(token):
            assert decode(found.data, GenerateDelta) == found.delta
            made.append(found.delta)
            shared += 1
        else:
            made += replies.grow(0, Chosen(token), None)[0]
    return replies, made, shared


def test_deltas_that_are_shared_are_those_that_a_text_makes_itself() -> None:
    """Characters of several bytes, a special token, and what is not a character, between letters."""
    half = bytes_of("\u00e9")[:1]
    tokens = [*bytes_of("a\u00e9\u4e2db"), END, *half, *bytes_of("c"), *half, *bytes_of("de")]
    _, whole, shared = deltas_of(tokens)
    tokenizer = make_tokenizer()
    text, plain = ReplyText(TextStream(tokenizer, ()), None), ReplyTokens(tokenizer)
    expected = []
    for token in tokens:
        text.read(token, None, False)
        text.tokens.append(plain.plain(token))
        expected.append(text.delta(0, None))
    assert whole == expected
    assert shared == len("abe"), "behind half a character, a token is not read as it is"


@pytest.mark.parametrize("params", [{"stop": ("xy",)}, {"logprobs": 0}, {"n": 2}])
def test_what_has_more_to_tell_shares_nothing(params: dict[str, Any]) -> None:
    assert deltas_of(bytes_of("ab"), **params)[2] == 0


def test_shared_deltas_count_as_tokens() -> None:
    replies, _, shared = deltas_of(bytes_of("abc"))
    [last], _ = replies.grow(0, Chosen(bytes_of("d")[0]), TextEnd("length"))
    assert shared == 3
    assert last.usage is not None
    assert last.usage.completion == 4
