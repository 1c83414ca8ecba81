"""The process of very long texts answers for each kind of model as the worker does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from msx_core.input_prompts import InputPrompts
from msx_llm.classification.inputs import PairCall, PairFiles
from msx_llm.embedding.inputs import InputCall, InputFiles
from msx_llm.text.prompts import PromptCall, PromptFiles
from msx_llm.text.text_calls import TextCall, TextFiles, TokenizeCall
from msx_llm.text.tokenizing import MIDDLE, Tokenizing
from msx_sdk.generation import ClassifyRequest, ContextLengthExceeded, EmbedRequest, GenerateRequest, TokenizeRequest
from tests.llm.embedding.checkpoints import VOCABULARY, tokenizer

LIMITS: Any = {"vocab_size": len(VOCABULARY), "longest": 12}
TEMPLATE = "{% for m in messages %}{{ m.content }} {{ n }}{% endfor %}"
WIDE = 1 << 80
KINDS: dict[str, tuple[type[TextFiles[Any]], dict[str, Any], TextCall[Any, Any]]] = {
    "prompts": (
        PromptFiles,
        {},
        PromptCall(request=GenerateRequest(messages=[{"content": "cat"}], chat_template_kwargs={"n": WIDE})),
    ),
    "inputs": (
        InputFiles,
        {"prompts": InputPrompts({"query": "the "}, "query"), "lower_case": True},
        InputCall(request=EmbedRequest(input="Dogs", truncate=6)),
    ),
    "pairs": (
        PairFiles,
        {"template": None, "prompt": "the ", "segments": True, "by_words": False},
        PairCall(request=ClassifyRequest(input="dogs", pair="cat")),
    ),
}
TOO_LONG: TextCall[Any, Any] = PairCall(request=ClassifyRequest(input="cat " * 20))


@pytest.mark.parametrize("kind", KINDS)
def test_it_answers_as_the_worker(tmp_path: Path, kind: str) -> None:
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    make, options, call = KINDS[kind]
    files = make(folder=str(tmp_path), **LIMITS, **options)
    texts = files.load()
    tokenize = TokenizeCall(request=TokenizeRequest(prompt="the dogs"))

    async def test(tokenizing: Tokenizing[Any]) -> None:
        for one in (call, tokenize):
            assert await tokenizing.run(one, MIDDLE + 1) == one.answer(texts)
        if kind == "pairs":
            with pytest.raises(ContextLengthExceeded, match="the input has 22"):
                await tokenizing.run(TOO_LONG, MIDDLE + 1)

    async def whole() -> None:
        tokenizing = Tokenizing(texts, files, 1000)
        try:
            await test(tokenizing)
        finally:
            tokenizing.close()

    asyncio.run(whole())
