"""Prompts and tokens of what requests send."""

from __future__ import annotations

import asyncio

import pytest

from msx_backend.llm.text import ChatTemplate
from msx_backend.llm.text.prompts import Prompts
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import GenerateRequest, TokenizeReply, TokenizeRequest
from tests.unit.backend.llm.fakes import END, VOCAB, make_tokenizer

SOURCE = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}"
    "{% if thinking %}?{% endif %}{% if add_generation_prompt %}>{% endif %}"
)
USER = [{"role": "user", "content": "Hi"}]
PROMPTS = Prompts(make_tokenizer(), ChatTemplate({"default": SOURCE}, {}), None, VOCAB)


def tokenized(request: TokenizeRequest, prompts: Prompts = PROMPTS) -> TokenizeReply:
    return asyncio.run(prompts.tokenized(request))


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
        asked = GenerateRequest(**{name: getattr(request_, name) for name in members})
        assert asyncio.run(PROMPTS.with_prompt(asked)).prompt == text


def test_the_text_of_tokens_has_special_ones() -> None:
    ids = [span.id for span in tokenized(TokenizeRequest(prompt="Hi")).tokens]
    assert tokenized(TokenizeRequest(ids=(*ids, END))) == TokenizeReply(tokens=[], text="Hi<|end|>")


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (TokenizeRequest(), "prompt: expected a text"),
        (TokenizeRequest(ids=(1, VOCAB)), "tokens: the model has no token 260, its tokens are 0 to 259"),
        (TokenizeRequest(messages=USER, chat_template="x"), "chat_template: this model uses its own alone"),
    ],
)
def test_refusals(request_: TokenizeRequest, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        tokenized(request_)


def test_messages_need_a_template() -> None:
    with pytest.raises(InvalidInput, match="messages: this model has no chat template; send a prompt"):
        tokenized(TokenizeRequest(messages=USER), Prompts(make_tokenizer(), None, None, VOCAB))
    both = GenerateRequest(prompt="x", messages=USER)
    with pytest.raises(InvalidInput, match="either a prompt or messages"):
        asyncio.run(PROMPTS.with_prompt(both))
