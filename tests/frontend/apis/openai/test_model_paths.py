"""OpenAI's routes of one model, below TorchServe's path of predictions."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.generation import Capabilities
from msx_sdk.generation import AdapterFiles
from tests.frontend.generation.speaker import ALL, Speaker, events, words
from tests.loops import run

PATH = "/predictions/m/1.0/v1"
MODELS = {"m": ALL, "other": ALL, "plain": Capabilities(), "new": None}
MESSAGES = [{"role": "user", "content": "x"}]


def speaker(*script: Any) -> Speaker:
    made = Speaker([*script], models=dict(MODELS))
    made.versions["m"].aliases = ("org/m", "gpt")
    made.versions["m"].schema.adapters = {"sql": AdapterFiles(id="1", folder="/a", stamp="")}
    return made


@pytest.mark.parametrize("path", [PATH, "/predictions/m//v1"])
@pytest.mark.parametrize(
    ("asked", "said", "adapter"),
    [("m", "m", ""), ("org/m", "org/m", ""), (None, "m", ""), ("sql", "sql", "sql"), ("gpt:sql", "gpt:sql", "sql")],
)
def test_completions_by_the_names_of_the_model(path: str, asked: str | None, said: str, adapter: str) -> None:
    async def test() -> None:
        one = speaker(words("a", " b"))
        reply = await one.ask(f"{path}/completions", {"prompt": "x", **({"model": asked} if asked else {})})
        assert (reply.status, reply.json["object"], reply.json["model"]) == (200, "text_completion", said)
        assert (one.jobs[0].model_name, one.asked[0].adapter) == ("m", adapter)

    run(test())


def test_chat_streams_events() -> None:
    async def test() -> None:
        body = {"model": "m", "messages": MESSAGES, "stream": True}
        reply = await speaker(words("a", " b")).ask(f"{PATH}/chat/completions", body)
        *chunks, done = events(reply)
        assert done == "[DONE]"
        assert "".join(one["choices"][0]["delta"].get("content", "") for one in chunks) == "a b"
        assert reply.headers["ts_stream_next"] == "true"

    run(test())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_names_of_the_model(method: str) -> None:
    async def test() -> None:
        reply = (await speaker().ask(f"{PATH}/models", method=method)).json
        assert [(one["id"], one.get("parent")) for one in reply["data"]] == [
            ("m", None),
            ("org/m", None),
            ("gpt", None),
            ("sql", "m"),
        ]

    run(test())


def test_a_name_of_another_model_is_refused() -> None:
    async def test() -> None:
        one = speaker(words("a"))
        reply = await one.ask(f"{PATH}/completions", {"model": "other", "prompt": "x"})
        assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")
        assert "The models of this path: m, org/m, gpt, sql." in reply.json["error"]["message"]
        assert one.jobs == []

    run(test())


@pytest.mark.parametrize(
    ("model", "handler", "owned"),
    [
        ("m", "", True),
        ("plain", "vllm_handler", False),
        ("new", "", False),
        ("new", "vllm_handler", True),
        ("new", "vllm", True),
        ("nowhere", "", False),
    ],
)
def test_only_models_that_generate_have_these_paths(model: str, handler: str, owned: bool) -> None:
    """Others' handlers read the rest of the path themselves."""
    one = speaker()
    if model in one.versions:
        one.versions[model].source.handler = handler
    for path in ("completions", "chat/completions", "models"):
        assert (one.router.find("POST", f"/predictions/{model}/1.0/v1/{path}").route is not None) == owned
