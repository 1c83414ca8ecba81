from __future__ import annotations

import struct
from typing import Any

import pytest

from msx_sdk.generation import EmbedReply, EmbedRequest
from tests.frontend.generation.speaker import Speaker, refused
from tests.loops import run


def reply(*numbers: float) -> list[EmbedReply]:
    return [EmbedReply(embedding=struct.pack(f"<{len(numbers)}f", *numbers), prompt_tokens=2)]


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [("x", ["x"]), (["x", "y"], ["x", "y"]), ([1, 2], [(1, 2)]), ([[1], [2]], [(1,), (2,)])],
)
def test_vectors_alone(inputs: Any, asked: list[Any]) -> None:
    async def test() -> None:
        speaker = Speaker([reply(0.5, -1)])
        exchange = await speaker.ask("/embed", {"inputs": inputs})
        assert exchange.json == [[0.5, -1]] * len(asked)
        assert exchange.headers["x-msx-model"] == "m"
        assert speaker.asked == [EmbedRequest(input=one, normalize=True) for one in asked]

    run(test())


def test_options() -> None:
    async def test() -> None:
        speaker = Speaker([reply(1)])
        await speaker.ask("/embed", {"inputs": "x", "normalize": False, "truncate": True, "dimensions": 4})
        await speaker.ask("/embed", {"inputs": "x", "truncate": True, "truncation_direction": "Left"})
        assert speaker.asked == [
            EmbedRequest(input="x", normalize=False, truncate=100, dimensions=4),
            EmbedRequest(input="x", normalize=True, truncate=100, truncate_left=True),
        ]

    run(test())


def test_the_name_of_a_prompt_is_passed_on() -> None:
    async def test() -> None:
        speaker = Speaker([reply(1)])
        assert (await speaker.ask("/embed", {"inputs": "x", "prompt_name": "query"})).status == 200
        assert speaker.asked == [EmbedRequest(input="x", normalize=True, prompt_name="query")]

    run(test())


def test_how_alike_texts_are() -> None:
    async def test() -> None:
        speaker = Speaker([reply(0.6, 0.8), reply(1, 0), reply(0, -2)])
        inputs = {"source_sentence": "x", "sentences": ["y", "z"]}
        asked = {"inputs": inputs, "parameters": {"prompt_name": "query"}}
        assert (await speaker.ask("/similarity", asked)).json == pytest.approx([0.6, -0.8])
        assert speaker.asked == [EmbedRequest(input=text, normalize=True, prompt_name="query") for text in "xyz"]

    run(test())


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/embed", {"inputs": ""}, "inputs: a text, token ids"),
        ("/embed", {"inputs": ["x"] * 2049}, "inputs: at most 2048"),
        ("/similarity", {"inputs": {"source_sentence": "x", "sentences": []}}, "inputs.sentences: at least one"),
        ("/similarity", {"inputs": {"source_sentence": "", "sentences": ["y"]}}, "inputs: texts of at least one"),
    ],
)
def test_what_is_wrong_is_named(path: str, body: Any, message: str) -> None:
    async def test() -> None:
        error = (await refused(Speaker([reply(1)]), path, body, 422))["error"]
        assert error.startswith(f"Input validation error: {message}")

    run(test())
