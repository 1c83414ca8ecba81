from __future__ import annotations

from typing import Any

from msx_sdk.generation import TextSpan, TokenizeReply
from tests.frontend.generation.speaker import Speaker, refused
from tests.loops import run

REPLY = TokenizeReply(tokens=[TextSpan(id=7, text="a", start=0, stop=1)], text="a")


def asked(path: str, **body: Any) -> Any:
    async def test() -> Any:
        speaker = Speaker([[REPLY]])
        exchange = await speaker.ask(path, {"model": "m", **body})
        return speaker.asked[0], exchange.json

    return run(test())


def test_tokens_of_a_text() -> None:
    request, reply = asked("/v1/tokenize", text="a")
    assert (request.prompt, request.add_special_tokens) == ("a", False)
    assert (reply["tokens"], reply["token_strings"]) == ([7], ["a"])
    assert reply["meta"]["api_version"] == {"version": "1"}


def test_text_of_tokens() -> None:
    request, reply = asked("/v1/detokenize", tokens=[7])
    assert (request.ids, reply["text"]) == ((7,), "a")


def test_a_text_is_needed() -> None:
    async def test() -> Any:
        return await refused(Speaker(), "/v1/tokenize", {"model": "m"}, 400)

    assert run(test())["message"].startswith("text: ")
