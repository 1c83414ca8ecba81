"""`/rerank` in TEI's shape, and `/v1/rerank` in that of Cohere and Jina."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from msx_core.service_errors import HandlerFailed
from msx_sdk.generation import Capabilities, ClassifyReply, ClassifyRequest, EmbedReply
from tests.frontend.generation.speaker import Answer, Speaker, refused
from tests.loops import run

RERANKS = Capabilities(classify=True, rerank=True, labels=("LABEL_0",), max_input_tokens=40)
LLM = Capabilities(generate=True)
ASKED = {"query": "q", "texts": ["a", "b", "c"]}
COHERES = {"query": "q", "documents": ["a", {"text": "b"}, "c"]}


def speaker(*scores: float, **options: Any) -> Speaker:
    script: list[Sequence[Answer]] = [[ClassifyReply(scores=(score,), prompt_tokens=5)] for score in scores]
    return Speaker(script, models={"llm": LLM, "ranker": RERANKS}, **options)


def pairs(**options: Any) -> list[ClassifyRequest]:
    return [ClassifyRequest(input="q", pair=text, **options) for text in "abc"]


def test_teis_shape() -> None:
    async def test() -> None:
        asked = speaker(0.25, 0.75, 0.5, default_llm="llm")
        exchange = await asked.ask("/rerank", ASKED)
        assert exchange.json == [{"index": n, "score": score} for n, score in ((1, 0.75), (2, 0.5), (0, 0.25))]
        assert exchange.headers["x-msx-model"] == "ranker"
        assert asked.asked == pairs(scale="probability")

    run(test())


def test_teis_options() -> None:
    async def test() -> None:
        asked = speaker(0.25, 0.75, 0.5)
        exchange = await asked.ask("/rerank", ASKED | {"raw_scores": True, "return_text": True, "truncate": True})
        assert [one["text"] for one in exchange.json] == ["b", "c", "a"]
        assert asked.asked == pairs(scale="logit", truncate=40)

    run(test())


@pytest.mark.parametrize("path", ["/v1/rerank", "/openai/v1/rerank", "/v2/rerank", "/rerank"])
def test_coheres_and_jinas_shape(path: str) -> None:
    async def test() -> None:
        asked = speaker(0.25, 0.75, 0.5)
        body = (await asked.ask(path, COHERES | {"model": "ranker", "top_n": 2, "return_documents": True})).json
        assert body.pop("id").startswith("rerank-")
        assert body == {
            "model": "ranker",
            "results": [
                {"index": 1, "relevance_score": 0.75, "document": {"text": "b"}},
                {"index": 2, "relevance_score": 0.5, "document": {"text": "c"}},
            ],
            "usage": {"prompt_tokens": 15, "total_tokens": 15},
            "meta": {"tokens": {"input_tokens": 15}},
        }
        assert asked.asked == pairs(truncate=40)

    run(test())


def test_documents_are_not_in_the_reply_unless_asked_for() -> None:
    async def test() -> None:
        exchange = await speaker(0.5).ask("/v1/rerank", COHERES | {"truncate_prompt_tokens": 7})
        assert [sorted(one) for one in exchange.json["results"]] == [["index", "relevance_score"]] * 3
        assert [one["index"] for one in exchange.json["results"]] == [0, 1, 2]

    run(test())


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/v1/rerank", {"query": "q"}, 400, "documents: needed, and missing"),
        ("/v1/rerank", {"query": "q", "documents": []}, 400, "documents: at least one is needed"),
        ("/v1/rerank", {"query": "", "documents": ["a"]}, 400, "query: a text of at least one character is needed"),
        ("/v1/rerank", COHERES | {"top_n": 0}, 400, "top_n: expected `int` >= 1"),
        ("/v1/rerank", COHERES | {"model": "llm"}, 400, 'Model "llm" does not rerank text'),
        ("/rerank", {"query": "q", "texts": ["a"] * 2049}, 422, "texts: at most 2048 texts are allowed, not 2049"),
        ("/v2/rerank", COHERES | {"model": "ranker", "max_tokens_per_doc": 9}, 400, "max_tokens_per_doc: not served"),
        ("/rerank", {"query": "q"}, 422, "texts: needed, or documents; one of them alone"),
        ("/rerank", ASKED | COHERES, 422, "texts: needed, or documents; one of them alone"),
        ("/rerank", ASKED | {"truncation_direction": "Up"}, 422, "truncation_direction: Left or Right is needed"),
    ],
)
def test_what_is_wrong_is_named(path: str, body: Any, status: int, message: str) -> None:
    async def test() -> None:
        error = (await refused(speaker(0.5), path, body, status))["error"]
        assert message in (error["message"] if isinstance(error, dict) else error)

    run(test())


def test_without_a_model_that_reranks() -> None:
    async def test() -> None:
        error = await refused(Speaker(models={"llm": LLM}), "/rerank", ASKED, 404)
        assert "none that can rerank text is loaded" in error["error"]

    run(test())


def test_a_handlers_own_refusal_and_a_reply_of_another_kind() -> None:
    async def test() -> None:
        failed = Speaker([[HandlerFailed(400, "input: too long")]], models={"m": RERANKS})
        exchange = await failed.ask("/v1/rerank", COHERES)
        assert (exchange.status, exchange.json["error"]["param"]) == (400, "query")
        for wrong in (EmbedReply(embedding=b"", prompt_tokens=1), ClassifyReply(scores=(), prompt_tokens=1)):
            exchange = await Speaker([[wrong]], models={"m": RERANKS}).ask("/rerank", ASKED)
            assert (exchange.status, "sent what is no ClassifyReply" in exchange.json["error"]) == (424, True)

    run(test())
