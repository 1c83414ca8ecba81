"""JSON's integers have any size: what is handed through keeps its value, what is counted with is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from msx_frontend.apis.kserve.generate import GenerateParameters
from msx_frontend.apis.openai.completions import CompletionRequest
from msx_frontend.apis.openai.embeddings import EmbeddingRequest
from msx_frontend.apis.openai.responses_request import ResponsesRequest
from msx_frontend.apis.tgi.request import Parameters
from msx_frontend.generation.chat_request import ChatRequest
from tests.frontend.generation.speaker import Speaker, refused, words
from tests.loops import run

WIDE = 10**30
MESSAGES = [{"role": "user", "content": "hi"}]
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"id": -WIDE})}}
HISTORY = [*MESSAGES, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": WIDE}}}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}

REQUESTS: list[tuple[str, type[msgspec.Struct], dict[str, Any], str]] = [
    ("/v1/chat/completions", ChatRequest, {"messages": MESSAGES, "logprobs": True}, ""),
    ("/v1/completions", CompletionRequest, {"prompt": "a"}, ""),
    ("/v1/responses", ResponsesRequest, {"input": "a"}, ""),
    ("/v1/embeddings", EmbeddingRequest, {"input": "a"}, ""),
    ("/generate", Parameters, {"inputs": "a"}, "parameters"),
    ("/v2/models/m/generate", GenerateParameters, {"text_input": "a"}, "parameters"),
]


def integers() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each member of each request that is an integer, or a list of them, with one that is too wide."""
    for path, kind, request, place in REQUESTS:
        for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
            if field.name == "seed" and kind is not Parameters:
                continue  # taken modulo 2**64
            for value in _wide(field.type):
                given = {field.encode_name: value}
                yield path, {**request, **({place: given} if place else given)}, field.encode_name


def _wide(kind: msgspec.inspect.Type) -> Iterator[Any]:
    if isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from _wide(one)
    elif isinstance(kind, msgspec.inspect.IntType):
        yield WIDE
    elif isinstance(kind, msgspec.inspect.ListType):
        yield from ([value] for value in _wide(kind.item_type))


@pytest.mark.parametrize(("path", "request_", "name"), [*integers()])
def test_one_that_is_counted_with_is_refused_by_name(path: str, request_: dict[str, Any], name: str) -> None:
    status = 422 if path == "/generate" else 400
    error = run(refused(Speaker(), path, request_, status))["error"]
    assert name in (error["param"] or error["message"] if isinstance(error, dict) else error)


def test_those_members_are_found() -> None:
    assert {"max_tokens", "prompt", "priority", "best_of", "stop_token_ids", "input", "truncate"} <= {
        name for _, _, name in integers()
    }


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_tools_and_the_options_of_a_template_are_handed_through(path: str) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        request: dict[str, Any] = {"tools": [TOOL if "chat" in path else {"type": "function", **TOOL["function"]}]}
        request |= {"messages": MESSAGES} if "chat" in path else {"input": "hi"}
        exchange = await speaker.ask(path, {**request, "chat_template_kwargs": {"x": [WIDE]}})
        assert exchange.status == 200, exchange.body
        (asked,) = speaker.asked
        assert asked.chat_template_kwargs == {"x": [WIDE]}
        assert asked.tools[0]["function"]["parameters"]["properties"]["a"]["maximum"] == WIDE

    run(test())


def test_the_arguments_of_an_earlier_call_are_handed_through() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        exchange = await speaker.ask("/v1/chat/completions", {"messages": HISTORY})
        assert exchange.status == 200, exchange.body
        assert speaker.asked[0].messages[1]["tool_calls"][0]["function"]["arguments"] == {"id": -WIDE}

    run(test())


def test_a_bound_of_a_schema_is_handed_through() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        body = {"messages": MESSAGES, "guided_json": SCHEMA}
        assert (await speaker.ask("/v1/chat/completions", body)).status == 200
        assert json.loads(speaker.asked[0].params.constraint.value) == SCHEMA

    run(test())


def test_an_integer_of_thousands_of_digits_is_refused_by_name() -> None:
    body = b'{"messages": [], "chat_template_kwargs": {"x": ' + b"1" * 5000 + b"}}"
    error = run(refused(Speaker(), "/v1/chat/completions", body, 400))["error"]
    assert error["param"].startswith("chat_template_kwargs")
