from __future__ import annotations

import struct
from typing import Any

import pytest

from msx_sdk.generation import Capabilities, EmbedReply
from tests.frontend.generation.speaker import ALL, Speaker, say
from tests.loops import run

VECTOR = EmbedReply(embedding=struct.pack("<2f", 0.5, -0.5), prompt_tokens=3)


def asked(path: str, body: Any = None, method: str = "GET", status: int = 200) -> Any:
    async def test() -> Any:
        embeds = Capabilities(embed=True, embedding_size=2, model_type="bert")
        speaker = Speaker(models={"m": ALL, "e": embeds, "plain": Capabilities()})
        speaker.versions["m"].aliases = ("gpt-4",)
        exchange = await speaker.ask(path, body, method=method)
        assert exchange.status == status, exchange.body
        return exchange.json

    return run(test())


def test_lists() -> None:
    for path in ("/api/tags", "/api/ps"):
        assert [one["name"] for one in asked(path)["models"]] == ["e:latest", "m:latest", "gpt-4:latest"]
    (first, *_) = asked("/api/ps")["models"]
    assert (first["details"]["family"], len(first["digest"])) == ("bert", 64)
    numbers = [int(number) for number in asked("/api/version")["version"].split(".")]
    assert numbers >= [0, 6, 4]  # clients compare them; VS Code's refuses what is older


@pytest.mark.parametrize("name", ["m", "m:latest"])
def test_one(name: str) -> None:
    shown = asked("/api/show", {"model": name}, "POST")
    assert {"completion", "embedding"} <= {*shown["capabilities"]}
    assert shown["model_info"]["unknown.context_length"] == 200
    assert "not found" in asked("/api/show", {"model": "crow"}, "POST", 404)["error"]
    assert asked("/api/show", {}, "POST", 400)["error"].startswith("model: needed")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/pull"), ("DELETE", "/api/delete"), ("POST", "/api/blobs/sha256:1")]
)
def test_models_are_not_fetched_for_clients(method: str, path: str) -> None:
    assert "is not served: this server's models are registered by its operator" in asked(path, {}, method, 400)["error"]


def test_an_unknown_path_has_ollamas_form() -> None:
    assert isinstance(asked("/api/nothing", method="POST", status=404)["error"], str)


def test_vectors() -> None:
    async def test() -> None:
        speaker = Speaker(models={"m": Capabilities(embed=True, max_input_tokens=9)})
        begun = speaker.begin("/api/embed", {"model": "m:latest", "input": ["a", "b"], "options": {"num_ctx": 1}})
        say(await speaker.next_job(0), VECTOR)
        say(await speaker.next_job(1), VECTOR)
        exchange = await begun.finish()
        assert exchange.json == {"model": "m:latest", "embeddings": [[0.5, -0.5]] * 2, "prompt_eval_count": 6}
        assert exchange.headers["x-msx-ignored"] == "options.num_ctx"
        assert [one.truncate for one in speaker.asked] == [9, 9]
        old = speaker.begin("/api/embeddings", {"model": "m", "prompt": "a"})
        say(await speaker.next_job(2), VECTOR)
        assert (await old.finish()).json == {"embedding": [0.5, -0.5]}

    run(test())
