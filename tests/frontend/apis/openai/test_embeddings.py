from __future__ import annotations

import base64
import math
import struct
from typing import Any

import pytest

from msx_core.service_errors import HandlerFailed
from msx_sdk.generation import EmbedReply, EmbedRequest, TokenizeReply
from tests.frontend.generation.speaker import Speaker, refused
from tests.frontend.metrics.test_server import exposed
from tests.loops import run

PATH = "/v1/embeddings"


def reply(*numbers: float) -> list[EmbedReply]:
    return [EmbedReply(embedding=struct.pack(f"<{len(numbers)}f", *numbers), prompt_tokens=2)]


def test_floats_and_base64() -> None:
    async def test() -> None:
        speaker = Speaker([reply(0.5, -1)])
        exchange = await speaker.ask(PATH, {"model": "m", "input": "x"})
        assert exchange.json == {
            "object": "list",
            "model": "m",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0]}],
            "usage": {"prompt_tokens": 2, "total_tokens": 2},
        }
        exchange = await speaker.ask(PATH, {"input": "x", "encoding_format": "base64"})
        packed = base64.b64decode(exchange.json["data"][0]["embedding"])
        assert struct.unpack("<2f", packed) == (0.5, -1)

    run(test())


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("x", ["x"]),
        (["x", "y"], ["x", "y"]),
        ([1, 2], [(1, 2)]),
        ([[1, 2], [3]], [(1, 2), (3,)]),
    ],
)
def test_inputs(given: Any, inputs: list[Any]) -> None:
    async def test() -> None:
        speaker = Speaker([reply(1)])
        exchange = await speaker.ask(PATH, {"input": given, "dimensions": 4, "truncate_prompt_tokens": 5})
        assert speaker.asked == [EmbedRequest(input=one, dimensions=4, truncate=5) for one in inputs]
        assert [item["index"] for item in exchange.json["data"]] == list(range(len(inputs)))

    run(test())


def test_many_keep_their_order() -> None:
    async def test() -> None:
        count = 100
        exchange = await Speaker([reply(n) for n in range(count)]).ask(PATH, {"input": ["x"] * count})
        assert [item["embedding"] for item in exchange.json["data"]] == [[float(n)] for n in range(count)]

    run(test())


def test_one_that_fails_fails_all() -> None:
    async def test() -> None:
        exchange = await Speaker([reply(1), [HandlerFailed(400, "input: too long")]]).ask(PATH, {"input": ["x", "y"]})
        assert (exchange.status, exchange.json["error"]["param"]) == (400, "input")

    run(test())


def test_a_reply_of_another_kind() -> None:
    async def test() -> None:
        exchange = await Speaker([[TokenizeReply(tokens=[], text="")]]).ask(PATH, {"input": "x"})
        assert exchange.status == 500
        assert "sent what is no EmbedReply" in exchange.json["error"]["message"]

    run(test())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"input": ""}, "input: a text, token ids"),
        ({"input": []}, "input: a text, token ids"),
        ({"input": [[]]}, "input: a text, token ids"),
        ({"input": ["x", 1]}, "input: token ids and texts in one list"),
        ({"input": ["x"] * 2049}, "input: at most 2048 texts are allowed, not 2049"),
        ({"input": "x", "dimensions": 9}, "dimensions: at most 8, not 9"),
        ({"input": "x", "encoding_format": "hex"}, "encoding_format: invalid enum value 'hex'"),
    ],
)
def test_what_is_wrong_is_named(body: Any, message: str) -> None:
    async def test() -> None:
        error = (await refused(Speaker([reply(1)]), PATH, body, 400))["error"]
        assert error["message"].startswith(message)

    run(test())


def test_a_vector_that_is_not_finite_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    speaker = Speaker([reply(0.5, math.nan)])

    async def test() -> None:
        exchange = speaker.begin(PATH, {"model": "m", "input": "x"})
        await exchange.finish()
        assert exchange.json["data"][0]["embedding"] == [0.5, None]

    run(test())
    assert exposed(speaker.metrics)["msx_non_finite_replies", "ModelName=m,ModelVersion=1.0"] == 1
    assert "a reply has NaN or an infinity at data[0].embedding[1]" in caplog.text
