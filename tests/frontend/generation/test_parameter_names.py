"""A wrong parameter is named as the client that sent it calls it, whichever part of the server found it."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.service_errors import BadRequest, HandlerFailed, ServiceUnavailable
from msx_frontend.generation.parameter_names import parameter_of, renamed
from msx_sdk.generation import ContextLengthExceeded
from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}}
FORMAT = {"text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}}}}
WRONG_TOOL = {"type": "function", "name": "?"}


def error_of(path: str, body: dict[str, Any], failure: HandlerFailed | None = None) -> Any:
    async def test() -> Any:
        exchange = await Speaker([[failure] if failure else words("a")]).ask(path, body)
        assert exchange.status == 400, exchange.body
        return exchange.json["error"]

    return run(test())


@pytest.mark.parametrize(
    ("path", "body", "ours", "theirs"),
    [
        (CHAT, HELLO, "prompt", "messages"),
        (CHAT, HELLO, "messages[0].content", "messages[0].content"),
        (CHAT, {**HELLO, "max_tokens": 5}, "max_tokens", "max_tokens"),
        (CHAT, {**HELLO, "max_completion_tokens": 5}, "max_tokens", "max_completion_tokens"),
        (CHAT, {**HELLO, "response_format": SCHEMA}, "constraint", "response_format.json_schema.schema"),
        (CHAT, {**HELLO, "guided_regex": "a"}, "constraint", "guided_regex"),
        (CHAT, {**HELLO, "tools": TOOLS, "tool_choice": "required"}, "constraint", "tools"),
        (CHAT, {**HELLO, "truncate_prompt_tokens": 5}, "truncate", "truncate_prompt_tokens"),
        ("/v1/completions", {"prompt": "a"}, "prompt", "prompt"),
        ("/v1/completions", {"prompt": "a", "guided_json": {}}, "constraint", "guided_json"),
        ("/v1/responses", {"input": "a"}, "prompt", "input"),
        ("/v1/responses", {"input": "a"}, "messages[0]", "input"),
        ("/v1/responses", {"input": "a", "max_output_tokens": 5}, "max_tokens", "max_output_tokens"),
        ("/v1/responses", {"input": "a", **FORMAT}, "constraint", "text.format.schema"),
        ("/v1/embeddings", {"input": "a"}, "truncate", "truncate_prompt_tokens"),
        ("/score", {"text_1": "a", "queries": "a", "documents": ["b"]}, "input", "queries"),
    ],
)
def test_the_handlers_names_become_the_clients(path: str, body: dict[str, Any], ours: str, theirs: str) -> None:
    error = error_of(path, body, HandlerFailed(400, f"{ours}: at most 7: no"))
    assert (error["param"], error["message"]) == (theirs, f"{theirs}: at most 7: no")


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"input": [{"role": "nobody", "content": "a"}]}, "input.role"),
        ({"input": "a", "tools": [WRONG_TOOL]}, "tools[0].name"),
        ({"input": "a", "text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": "a", "text": {"format": {"type": "json_schema", "schema": 1}}}, "text.format.schema"),
    ],
)
def test_a_response_does_not_speak_of_the_chat_that_is_made_of_it(body: dict[str, Any], parameter: str) -> None:
    assert error_of("/v1/responses", body)["param"] == parameter


def test_kserves_clients_have_a_name_for_the_prompt() -> None:
    failure = HandlerFailed(400, "prompt: too long")
    assert error_of("/v2/models/m/generate", {"text_input": "a"}, failure) == "text_input: too long"


def test_a_text_that_is_too_long_has_openais_code() -> None:
    raised = ContextLengthExceeded("prompt: This model's maximum context length is 7 tokens")
    error = error_of(CHAT, HELLO, HandlerFailed(raised.status, raised.message, raised.code))
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == "messages: This model's maximum context length is 7 tokens"


def test_other_errors_stay_as_they_are() -> None:
    unavailable = ServiceUnavailable("prompt: it only looks like one")
    assert renamed(unavailable, {"prompt": "input"}).message == "prompt: it only looks like one"
    assert renamed(BadRequest("prompts: 7"), {"prompt": "input"}).message == "prompts: 7"
    assert parameter_of("The prompt is too long: 7") is None
