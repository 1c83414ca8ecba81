from __future__ import annotations

from typing import Any

import pytest

from msx_sdk.generation import SamplingParams
from tests.frontend.generation.speaker import Speaker, events, refused, words
from tests.loops import run

PATH = "/v2/models/m/generate"
HEAD = {"model_name": "m", "model_version": "1.0"}


def test_whole() -> None:
    async def test() -> None:
        speaker = Speaker([words("a", "b")])
        exchange = await speaker.ask(PATH, {"text_input": "x", "id": "7", "parameters": {"max_tokens": 2, "stop": "."}})
        assert exchange.json == {"id": "7", **HEAD, "text_output": "ab"}
        assert speaker.asked[0].params == SamplingParams(temperature=0.0, max_tokens=2, stop=(".",))
        assert (await speaker.ask(PATH, {"text_input": "x"})).json == {**HEAD, "text_output": "ab"}

    run(test())


@pytest.mark.parametrize(("path", "parameters"), [(f"{PATH}_stream", {}), (PATH, {"stream": True})])
def test_stream(path: str, parameters: dict[str, Any]) -> None:
    async def test() -> None:
        exchange = await Speaker([words("a", "", "b")]).ask(path, {"text_input": "x", "parameters": parameters})
        assert events(exchange) == [{**HEAD, "text_output": text} for text in ("a", "b", "")]

    run(test())


def test_details() -> None:
    async def test() -> None:
        body = {"text_input": "x", "parameters": {"details": True, "temperature": 0.5}}
        exchange = await Speaker([words("a", finish="stop")]).ask(PATH, body)
        token = {"id": 0, "text": "a", "logprob": -0.5, "special": False}
        assert exchange.json["details"] == {"finish_reason": "stop_sequence", "logprobs": [token]}
        *_, last = events(await Speaker([words("a")]).ask(f"{PATH}_stream", body))
        assert last["details"] == {"finish_reason": "eos_token", "logprobs": []}

    run(test())


def test_a_version_in_the_path() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        assert (await speaker.ask("/v2/models/m/versions/1.0/generate", {"text_input": "x"})).status == 200

    run(test())


KNOWN = "The models that can generate text: m."


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        (
            "/v2/models/crow/generate",
            {"text_input": "x"},
            404,
            f"Model not found: crow. {KNOWN}",
        ),
        (PATH, {}, 400, "text_input: needed, and missing"),
        (PATH, {"text_input": "x", "parameters": {"top_p": 2}}, 400, "parameters.top_p: expected `float` <= 1.0"),
    ],
)
def test_refusals(path: str, body: Any, status: int, error: str) -> None:
    async def test() -> None:
        assert await refused(Speaker([words("a")]), path, body, status) == {"error": error}

    run(test())
