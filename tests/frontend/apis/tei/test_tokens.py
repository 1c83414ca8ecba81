"""TEI's `/tokenize` and `/decode`, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from msx_sdk.generation import Capabilities, TextSpan, TokenizeReply, TokenizeRequest
from tests.frontend.generation.speaker import Speaker, refused
from tests.loops import run

LLM = Capabilities(generate=True, tokenize=True)
EMBEDS = Capabilities(embed=True, tokenize=True)
SPANS = [TextSpan(id=2, text="", start=0, stop=0), TextSpan(id=7, text="a", start=0, stop=1)]
REPLY = TokenizeReply(tokens=SPANS, text="a", special={2: "[CLS]"})
TOKENS = [
    {"id": 2, "text": "[CLS]", "special": True, "start": None, "stop": None},
    {"id": 7, "text": "a", "special": False, "start": 0, "stop": 1},
]


def speaker(**models: Capabilities) -> Speaker:
    return Speaker([[REPLY]], models={**models})


@pytest.mark.parametrize("inputs", ["a", ["a"]])
def test_tokens_of_each_text(inputs: Any) -> None:
    async def test() -> None:
        asked = speaker(embeds=EMBEDS)
        exchange = await asked.ask("/tokenize", {"inputs": inputs, "add_special_tokens": False})
        assert exchange.json == [TOKENS]
        assert asked.asked == [TokenizeRequest(prompt="a", add_special_tokens=False)]

    run(test())


def test_a_list_is_teis_and_a_text_is_tgis_where_a_model_generates() -> None:
    async def test() -> None:
        asked = speaker(embeds=EMBEDS, llm=LLM)
        many, one = [await asked.ask("/tokenize", {"inputs": it}) for it in (["a", "b"], "a")]
        assert many.json == [TOKENS, TOKENS]
        assert one.json == [{"id": 2, "text": "", "start": 0, "stop": 0}, {"id": 7, "text": "a", "start": 0, "stop": 1}]
        assert [it.headers["x-msx-model"] for it in (many, one)] == ["llm", "llm"]
        named = await asked.ask("/tokenize", {"inputs": "a", "model": "embeds"})
        assert (named.json, named.headers["x-msx-model"]) == ([TOKENS], "embeds")

    run(test())


@pytest.mark.parametrize(("ids", "lists"), [([1, 2], [(1, 2)]), ([[1], [2, 3]], [(1,), (2, 3)])])
def test_texts_of_ids(ids: Any, lists: list[Any]) -> None:
    async def test() -> None:
        asked = speaker(embeds=EMBEDS)
        assert (await asked.ask("/decode", {"ids": ids})).json == ["a"] * len(lists)
        assert asked.asked == [TokenizeRequest(ids=one, skip_special_tokens=True) for one in lists]

    run(test())


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tokenize", {"inputs": []}, "inputs: at least one"),
        ("/tokenize", {"inputs": ["a", ""]}, "inputs: texts of at least one"),
        ("/tokenize", {"inputs": ["a"], "prompt_name": "query"}, "prompt_name: not served here"),
        ("/decode", {"ids": []}, "ids: at least one"),
        ("/decode", {"ids": [1, [2]]}, "ids: token ids, or a list of lists"),
        ("/decode", {"ids": [[-1]]}, "ids: token ids, or a list of lists"),
        ("/embed", {"inputs": "a", "truncation_direction": "Middle"}, "truncation_direction: Left or Right is needed"),
    ],
)
def test_what_is_wrong_is_named(path: str, body: Any, message: str) -> None:
    async def test() -> None:
        error = (await refused(speaker(embeds=EMBEDS), path, body, 422))["error"]
        assert error.startswith(f"Input validation error: {message}")

    run(test())


def test_sparse_vectors_and_states_of_tokens() -> None:
    async def test() -> None:
        for path in ("/embed_sparse", "/embed_all"):
            error = await refused(speaker(embeds=EMBEDS), path, {"inputs": "a"}, 422)
            assert f"`{path}` is not served" in error["error"]

    run(test())
