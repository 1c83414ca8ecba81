"""Where texts are tokenized, by how long they are."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from msx_core.chat_templates.request_template import RequestTemplates
from msx_llm.text import ChatTemplate, Tokenizer
from msx_llm.text.prompts import PromptFiles, Prompts
from msx_llm.text.requests import RequestTexts
from msx_llm.text.tokenizing import MIDDLE, SHORT
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import ContextLengthExceeded, GenerateRequest, TokenizeReply, TokenizeRequest
from tests.llm.fakes import VOCAB, make_tokenizer
from tests.processes import children_of

SOURCE = "{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}"
LONGEST = 1 << 20
BODY = 6553500
TOKENIZER = make_tokenizer()
PROMPTS = Prompts(TOKENIZER, ChatTemplate({"default": SOURCE}, {}), VOCAB, LONGEST)
Calls = dict[int, list[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tokenizer.json").write_text(TOKENIZER.to_json())
    (tmp_path / "chat_template.jinja").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def texts(folder: Path) -> Iterator[RequestTexts]:
    made = RequestTexts(PROMPTS, files_of(folder), BODY)
    yield made
    made.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Record what this process tokenizes and renders, by thread."""
    seen: Calls = {}

    def watched(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def watching(*args: Any, **options: Any) -> Any:
            seen.setdefault(threading.get_ident(), []).append(name)
            return call(*args, **options)

        return watching

    for kind, name in ((Tokenizer, "_ids"), (Tokenizer, "_encode"), (ChatTemplate, "render")):
        monkeypatch.setattr(kind, name, watched(getattr(kind, name), name))
    return seen


def files_of(folder: Path, longest: int = LONGEST) -> PromptFiles:
    return PromptFiles(folder=str(folder), vocab_size=VOCAB, longest=longest)


def prompt_of(texts: RequestTexts, request: GenerateRequest) -> Any:
    async def whole() -> Any:
        made = await texts.with_tokens(request)
        texts.close()
        return made.prompt

    return asyncio.run(whole())


def chat(characters: int, messages: int = 1) -> GenerateRequest:
    said = [{"role": "user", "content": "x y " * (characters // 4 // messages)} for _ in range(messages)]
    return GenerateRequest(messages=said, add_special_tokens=False)


def test_a_short_prompt_is_left_to_the_engine(texts: RequestTexts, calls: Calls) -> None:
    assert prompt_of(texts, GenerateRequest(prompt="x" * SHORT)) == "x" * SHORT
    assert prompt_of(texts, GenerateRequest(prompt=(1, 2))) == (1, 2)
    assert calls == {}


@pytest.mark.parametrize("size", [SHORT + 1, MIDDLE])
def test_a_longer_prompt_is_tokenized_on_another_thread(texts: RequestTexts, calls: Calls, size: int) -> None:
    assert prompt_of(texts, GenerateRequest(prompt="x" * size)) == tuple(TOKENIZER.encode("x" * size))
    assert calls.pop(threading.get_ident()) == ["_ids"]  # this test's own
    assert [*calls.values()] == [["_ids"]]


@pytest.mark.parametrize("request_", [GenerateRequest(prompt="x y " * MIDDLE), chat(4 * MIDDLE), chat(4_000, 1_000)])
def test_a_very_long_prompt_is_rendered_and_tokenized_in_another_process(
    texts: RequestTexts, calls: Calls, request_: GenerateRequest
) -> None:
    found = prompt_of(texts, request_)
    assert calls == {}
    assert found == PROMPTS.tokens(request_)


def test_its_tokens_are_told_by_another_process(texts: RequestTexts, calls: Calls) -> None:
    request = TokenizeRequest(prompt="x y " * (MIDDLE // 2))

    async def whole() -> TokenizeReply:
        reply = msgspec.msgpack.decode(await texts.tokenized(request), type=TokenizeReply)
        texts.close()
        return reply

    found = asyncio.run(whole())
    assert calls == {}
    assert found == PROMPTS.reply(request)


def test_what_is_too_long_for_certain_reaches_no_tokenizer(folder: Path, calls: Calls) -> None:
    texts, before = RequestTexts(Prompts(TOKENIZER, None, VOCAB, 10), files_of(folder, 10), BODY), _children()
    with pytest.raises(ContextLengthExceeded, match="the prompt has more than 10"):
        prompt_of(texts, GenerateRequest(prompt="x" * (MIDDLE + 1)))
    assert calls == {}
    assert _children() <= before


def _children() -> set[psutil.Process]:
    return set(children_of(os.getpid()))


def test_what_is_to_be_cut_is_not_refused(texts: RequestTexts) -> None:
    assert prompt_of(texts, GenerateRequest(prompt="x y " * LONGEST, truncate=3)) == tuple(TOKENIZER.encode(" y "))


def test_a_chat_template_of_the_request(folder: Path) -> None:
    files = files_of(folder)
    asked = GenerateRequest(messages=[{"role": "user", "content": "Hi"}], chat_template="<{{ messages[0].content }}>")
    own = RequestTexts(PROMPTS, files, BODY, RequestTemplates({}))
    assert TOKENIZER.decode(prompt_of(own, asked)) == "<Hi>"
    with pytest.raises(InvalidInput, match="chat_template: this model uses its own alone"):
        prompt_of(RequestTexts(PROMPTS, files, BODY), asked)
