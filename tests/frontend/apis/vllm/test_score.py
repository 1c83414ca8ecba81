from __future__ import annotations

import struct
from typing import Any

import pytest

from msx_sdk.generation import Capabilities, ClassifyReply, EmbedReply
from tests.frontend.generation.speaker import ALL, Speaker, refused
from tests.loops import run

RANKER = Capabilities(classify=True, rerank=True, labels=("fits",), max_input_tokens=50)


def scored(path: str = "/score", /, **body: Any) -> Any:
    """The requests that workers got, and the reply."""

    async def test() -> Any:
        speaker = Speaker([[ClassifyReply(scores=(score,), prompt_tokens=2)] for score in (0.25, 0.75)])
        speaker = Speaker(speaker.script, models={"ranker": RANKER})
        exchange = await speaker.ask(path, body)
        assert exchange.status == 200, exchange.body
        return speaker.asked, exchange.json

    return run(test())


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
def test_a_text_with_several(path: str) -> None:
    asked, reply = scored(path, text_1="q", text_2=["a", "b"])
    assert [(one.input, one.pair, one.scale, one.truncate) for one in asked] == [
        ("q", "a", "files", None),
        ("q", "b", "files", None),
    ]
    assert reply["data"] == [
        {"index": 0, "object": "score", "score": 0.25},
        {"index": 1, "object": "score", "score": 0.75},
    ]
    assert (reply["object"], reply["model"]) == ("list", "ranker")
    assert reply["usage"] == {"prompt_tokens": 4, "total_tokens": 4, "completion_tokens": 0}


@pytest.mark.parametrize(
    ("first", "second"), [("queries", "documents"), ("queries", "items"), ("data_1", "data_2"), ("text_1", "text_2")]
)
def test_pairs_by_every_name(first: str, second: str) -> None:
    asked, _ = scored("/score", **{first: ["q", "r"], second: ["a", "b"]})
    assert [(one.input, one.pair) for one in asked] == [("q", "a"), ("r", "b")]


def test_how_texts_are_cut_and_scores_are_scaled() -> None:
    (asked,), _ = scored(
        text_1="q", text_2="a", truncate_prompt_tokens=-1, truncation_side="left", use_activation=False
    )
    assert (asked.truncate, asked.truncate_left, asked.scale) == (50, True, "logit")
    assert scored(text_1="q", text_2="a", use_activation=True)[0][0].scale == "probability"


def test_a_model_of_vectors_scores_by_their_angles() -> None:
    async def test() -> Any:
        vectors = [(1.0, 0.0), (0.0, 2.0), (3.0, 0.0), (0.0, 0.0)]
        script: list[Any] = [[EmbedReply(embedding=struct.pack("<2f", *one), prompt_tokens=1)] for one in vectors]
        speaker = Speaker(script, models={"m": ALL})
        return await speaker.ask("/score", {"model": "m", "text_1": "q", "text_2": ["a", "b", "c"]})

    reply = run(test()).json
    assert [one["score"] for one in reply["data"]] == [0.0, 1.0, 0.0]
    assert reply["usage"]["prompt_tokens"] == 4


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({}, "text_1"),
        ({"text_1": "q"}, "text_1"),
        ({"text_1": ["q", "r"], "text_2": ["a", "b", "c"]}, "text_1"),
        ({"text_1": [], "text_2": []}, "text_1"),
        ({"text_1": "q", "text_2": [""]}, "text_2"),
        ({"queries": "q", "documents": ["a"], "max_tokens_per_doc": 4}, "max_tokens_per_doc"),
        ({"queries": "q", "documents": ["a"], "instruction": "find"}, "instruction"),
        ({"text_1": "q", "text_2": "a", "truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        ({"text_1": "q", "text_2": {"content": []}}, "text_2"),
    ],
)
def test_wrong_requests_name_the_member(wrong: dict[str, Any], name: str) -> None:
    async def test() -> Any:
        return await refused(Speaker([[ClassifyReply(scores=(1.0,), prompt_tokens=1)]]), "/score", wrong, 400)

    error = run(test())["error"]
    assert (error["param"], error["message"].startswith(f"{name}: ")) == (name, True)


def test_a_model_that_does_neither_is_refused_as_one_that_does_not_rerank() -> None:
    async def test() -> Any:
        speaker = Speaker(models={"m": Capabilities(generate=True)})
        return await refused(speaker, "/score", {"model": "m", "text_1": "q", "text_2": "a"}, 400)

    assert "rerank" in run(test())["error"]["message"]
