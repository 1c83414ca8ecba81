"""Prompts and tokens of what requests send."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_core.generation.wire import decode
from msx_llm.text import ChatTemplate, Tokenizer
from msx_llm.text.pieces import PIECE
from msx_llm.text.prompts import MOST_SPANS, PromptFiles, Prompts
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, GenerateRequest, TokenizeReply, TokenizeRequest
from tests.llm.fakes import END, VOCAB, make_tokenizer
from tests.llm.text.watched import tokenized_texts

SOURCE = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}"
    "{% if thinking %}?{% endif %}{% if add_generation_prompt %}>{% endif %}"
)
USER = [{"role": "user", "content": "Hi"}]
LONG = "one two" + " one two" * 20_000
TOKENIZER = make_tokenizer()
PROMPTS = Prompts(TOKENIZER, ChatTemplate({"default": SOURCE}, {}), VOCAB, 40)


def tokenized(request: TokenizeRequest, prompts: Prompts = PROMPTS) -> TokenizeReply:
    return decode(prompts.tokenized(request), TokenizeReply)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (TokenizeRequest(prompt="Hi"), "Hi"),
        (TokenizeRequest(messages=USER), "user:Hi>"),
        (TokenizeRequest(messages=USER, add_generation_prompt=False), "user:Hi"),
        (TokenizeRequest(messages=USER, chat_template_kwargs={"thinking": True}), "user:Hi?>"),
    ],
)
def test_tokens_are_those_of_the_prompt_that_a_text_would_have(request_: TokenizeRequest, text: str) -> None:
    reply = tokenized(request_)
    assert (reply.text, "".join(span.text for span in reply.tokens)) == (text, text)
    if request_.messages is not None:
        members = ("messages", "add_generation_prompt", "chat_template_kwargs")
        asked = GenerateRequest(**{name: getattr(request_, name) for name in members}, add_special_tokens=False)
        assert TOKENIZER.decode(PROMPTS.tokens(asked)) == text


def test_the_text_of_tokens_has_special_ones() -> None:
    ids = [span.id for span in tokenized(TokenizeRequest(prompt="Hi")).tokens]
    assert tokenized(TokenizeRequest(ids=(*ids, END))) == TokenizeReply(tokens=[], text="Hi<|end|>")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (TokenizeRequest(), "prompt: expected a text"),
        (TokenizeRequest(ids=(1, VOCAB)), "tokens: the model has no token 260, its tokens are 0 to 259"),
    ],
)
def test_refusals(request_: TokenizeRequest, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        tokenized(request_)


def test_messages_need_a_template() -> None:
    with pytest.raises(InvalidInput, match="messages: this model has no chat template; send a prompt"):
        tokenized(TokenizeRequest(messages=USER), Prompts(TOKENIZER, None, VOCAB, 40))
    both = GenerateRequest(prompt="x", messages=USER)
    with pytest.raises(InvalidInput, match="either a prompt or messages"):
        PROMPTS.tokens(both)


@pytest.mark.parametrize(("truncate", "kept"), [(None, "one two"), (3, "two"), (40, "one two")])
def test_a_prompt_is_cut_at_its_beginning(truncate: int | None, kept: str) -> None:
    request = GenerateRequest(prompt="one two", truncate=truncate)
    assert TOKENIZER.decode(PROMPTS.tokens(request)) == kept


def test_a_prompt_that_is_cut_is_not_tokenized_to_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tokenized_texts(monkeypatch)
    assert TOKENIZER.decode(PROMPTS.tokens(GenerateRequest(prompt=LONG, truncate=4))) == " two"
    assert sum(map(len, seen)) < 2 * PIECE


def test_a_prompt_that_does_not_fit_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tokenized_texts(monkeypatch)
    with pytest.raises(ContextLengthExceeded, match="the prompt has more than 40"):
        PROMPTS.tokens(GenerateRequest(prompt=LONG))
    assert seen == []


def test_a_prompt_is_tokenized_as_far_as_to_see_that_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tokenized_texts(monkeypatch)
    monkeypatch.setattr(Tokenizer, "least", lambda self, text: 0)
    with pytest.raises(ContextLengthExceeded, match="the prompt has more than 40"):
        PROMPTS.tokens(GenerateRequest(prompt=LONG))
    assert sum(map(len, seen)) < 2 * PIECE


@pytest.mark.parametrize(("size", "truncate"), [(41, None), (60, 41)])
def test_a_prompt_that_was_counted_is_refused_with_its_size(size: int, truncate: int | None) -> None:
    with pytest.raises(ContextLengthExceeded, match="the prompt has 41"):
        PROMPTS.tokens(GenerateRequest(prompt="é" * (size // 2) + "x" * (size % 2), truncate=truncate))


def test_a_reply_has_a_limit() -> None:
    with pytest.raises(InvalidInput, match="more than 131072 tokens, the most of one reply; send its parts one by one"):
        tokenized(TokenizeRequest(prompt="x" * (MOST_SPANS + 1)))
    assert len(tokenized(TokenizeRequest(prompt="x" * MOST_SPANS)).tokens) == MOST_SPANS


def test_prompts_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(TOKENIZER.to_json())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": SOURCE}))
    found = PromptFiles(folder=str(tmp_path), vocab_size=VOCAB, longest=40).load()
    assert tokenized(TokenizeRequest(messages=USER), found).text == "user:Hi>"
