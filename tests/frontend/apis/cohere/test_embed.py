from __future__ import annotations

import base64
import struct
from typing import Any

import msgspec
import pytest

from msx_frontend.apis.cohere.embed import ENCODINGS, prompt_for
from msx_sdk.generation import EmbedReply
from tests.frontend.generation.speaker import ALL, Speaker, refused
from tests.loops import run

NUMBERS = (0.5, -0.5, 0.25, -0.25, 1.0, 2.0, 3.0, -1.0, 0.0)
VECTOR = EmbedReply(embedding=struct.pack("<9f", *NUMBERS), prompt_tokens=2)
PROMPTED = msgspec.structs.replace(ALL, prompts=("query", "passage"))


def embedded(prompts: tuple[str, ...] = (), **body: Any) -> Any:
    """The requests that workers got, the reply and its headers."""

    async def test() -> Any:
        speaker = Speaker([[VECTOR]], models={"m": msgspec.structs.replace(ALL, prompts=prompts)})
        exchange = await speaker.ask("/v2/embed", {"model": "m", **body})
        assert exchange.status == 200, exchange.body
        return speaker.asked, exchange.json, exchange.headers

    return run(test())


def test_vectors() -> None:
    asked, reply, _ = embedded(texts=["a", "b"], output_dimension=4)
    assert [(one.input, one.dimensions, one.truncate, one.truncate_left) for one in asked] == [
        ("a", 4, 100, False),
        ("b", 4, 100, False),
    ]
    assert reply["embeddings"] == {"float": [list(NUMBERS)] * 2}
    assert (reply["response_type"], reply["texts"]) == ("embeddings_by_type", ["a", "b"])
    assert reply["meta"] == {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 4}}


def test_inputs_of_parts() -> None:
    part = {"type": "text", "text": "a"}
    asked, reply, _ = embedded(inputs=[{"content": [part, part]}])
    assert (asked[0].input, reply["texts"]) == ("a\na", ["a\na"])


def test_types() -> None:
    found = embedded(texts=["a"], embedding_types=["base64", "ubinary", "binary"])[1]["embeddings"]
    assert base64.b64decode(found["base64"][0]) == VECTOR.embedding
    assert found["ubinary"] == [[0b10101110, 0b10000000]]
    assert found["binary"] == [[0b10101110 - 128, 0]]


def test_a_type_is_made_once_however_often_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[EmbedReply] = []

    def write(reply: EmbedReply) -> list[float]:
        made.append(reply)
        return [0.5]

    monkeypatch.setitem(ENCODINGS, "float", write)
    assert embedded(texts=["a"], embedding_types=["float"] * 1000)[1]["embeddings"] == {"float": [[0.5]]}
    assert len(made) == 1


@pytest.mark.parametrize(
    ("given", "most", "left"),
    [
        ({"truncate": "NONE"}, None, False),
        ({"truncate": "START"}, 100, True),
        ({"max_tokens": 7}, 7, False),
        ({"max_tokens": 700}, 100, False),
    ],
)
def test_texts_that_are_too_long(given: dict[str, Any], most: int | None, left: bool) -> None:
    (asked,) = embedded(texts=["a"], **given)[0]
    assert (asked.truncate, asked.truncate_left) == (most, left)


def test_kinds_of_input_are_prompts_of_the_model() -> None:
    (asked,), _, headers = embedded(("query", "passage"), texts=["a"], input_type="search_document")
    assert asked.prompt_name == "passage"
    assert "x-msx-ignored" not in headers
    (asked,), _, headers = embedded(texts=["a"], input_type="clustering")
    assert (asked.prompt_name, headers["x-msx-ignored"]) == (None, "input_type")


@pytest.mark.parametrize(
    ("kind", "prompts", "found"),
    [
        ("search_query", ("query", "search_query"), "search_query"),
        ("search_query", ("query",), "query"),
        ("search_document", ("corpus", "document"), "document"),
        ("retrieval", ("retrieval",), "retrieval"),
        ("search_query", (), None),
        (None, ("query",), None),
    ],
)
def test_names_of_prompts(kind: str | None, prompts: tuple[str, ...], found: str | None) -> None:
    assert prompt_for(kind, prompts) == found


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({}, "texts"),
        ({"texts": []}, "texts"),
        ({"texts": [""]}, "texts"),
        ({"texts": ["a"], "inputs": []}, "texts"),
        ({"images": ["data:"]}, "images"),
        ({"inputs": [{"content": [{"type": "image_url"}]}]}, "inputs[0].content"),
        ({"texts": ["a"], "embedding_types": ["int8"]}, "embedding_types"),
        ({"texts": ["a"], "embedding_types": ["float", ""]}, "embedding_types"),
        ({"texts": ["a"] * 2049}, "texts"),
    ],
)
def test_wrong_requests_name_the_member(wrong: dict[str, Any], name: str) -> None:
    async def test() -> Any:
        return await refused(Speaker([[VECTOR]], size=100_000), "/v2/embed", {"model": "m", **wrong}, 400)

    assert run(test())["message"].startswith(f"{name}: ")
