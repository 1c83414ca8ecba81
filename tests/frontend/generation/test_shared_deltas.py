"""Deltas that many texts have: read once, and counted each time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from msx_core.generation.wire import encode
from msx_frontend.generation import generation
from msx_sdk.generation import GenerateDelta, Token, Usage
from tests.frontend.generation.speaker import Speaker, events
from tests.loops import run

PATHS = {
    "/v1/completions": {"prompt": "x", "stream": True},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}], "stream": True},
    "/generate_stream": {"inputs": "x"},
}


def plain(text: str, **members: Any) -> GenerateDelta:
    return GenerateDelta(text=text, tokens=(Token(id=7, text=text),), **members)


def end(count: int) -> GenerateDelta:
    return plain("!", finish_reason="length", usage=Usage(prompt=3, completion=count))


@pytest.fixture(autouse=True)
def no_memory() -> None:
    generation._decoded.cache_clear()


@pytest.mark.parametrize(("path", "body"), PATHS.items())
def test_a_text_is_the_same_whether_its_deltas_are_known(path: str, body: Any) -> None:
    async def test() -> None:
        told = []
        for _ in range(2):
            speaker = Speaker([[plain("a"), plain("b"), plain("b"), plain("a"), end(5)]])
            exchange = await speaker.ask(path, body)
            told.append([_told(event) for event in events(exchange)])
        assert told[0] == told[1]
        assert generation._decoded.cache_info().hits

    run(test())


def _told(event: Any) -> Any:
    """Members that do not differ from request to request."""
    return event if event == "[DONE]" else {key: event[key] for key in event if key not in ("id", "created")}


def test_known_deltas_are_counted() -> None:
    async def test() -> None:
        speaker = Speaker([[plain("a"), plain("b"), plain("b"), plain("b"), end(5)]])
        await speaker.ask("/v1/completions", PATHS["/v1/completions"])
        assert sum(speaker.versions["m"].metrics.text.between.counts) == 4
        assert sum(speaker.versions["m"].metrics.text.first.counts) == 1

    run(test())


@pytest.mark.parametrize(
    "other",
    [
        plain("b", index=1),
        plain("b", finish_reason="stop"),
        plain("b", usage=Usage(prompt=1, completion=1)),
        plain("b", prompt_ids=(1,)),
        GenerateDelta(text="b"),
        GenerateDelta(text="bb", tokens=(Token(id=1, text="b"), Token(id=1, text="b"))),
        plain("b" * 400),
    ],
)
def test_what_tells_more_than_a_token_is_not_kept(other: GenerateDelta) -> None:
    assert generation._shared(encode(plain("b"))) == plain("b")
    assert generation._shared(encode(other)) is None


def test_what_is_not_a_delta_is_not_kept() -> None:
    assert generation._shared(msgspec.msgpack.encode("nothing")) is None
