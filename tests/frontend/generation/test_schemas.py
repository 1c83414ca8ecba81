"""Parts of a schema the model is not held to are named in the reply, or refused where the client is strict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
PATH = "properties.a.uniqueItems"
OFFERED = Capabilities(generate=True, chat=True, constraints=("json_schema",), unheld_keywords=("uniqueItems",))


def tool(name: str, schema: Any, **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema, **function}}


def formatted(**of: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, **of}}}


def deep(levels: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = {"anyOf": [schema]}
    return schema


def ask(path: str, body: dict[str, Any], offered: Capabilities = OFFERED) -> Any:
    async def test() -> Any:
        return await Speaker([words("a")], models={"m": offered}).ask(path, body)

    return run(test())


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        (CHAT, {**HELLO, **formatted()}, f"response_format.json_schema.schema.{PATH}"),
        (CHAT, {**HELLO, **formatted(), "stream": True}, f"response_format.json_schema.schema.{PATH}"),
        (CHAT, {**HELLO, "guided_json": SCHEMA}, f"guided_json.{PATH}"),
        ("/v1/completions", {"prompt": "a", "structured_outputs": {"json": SCHEMA}}, f"structured_outputs.json.{PATH}"),
        (
            "/v1/responses",
            {"input": "a", "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}}},
            f"text.format.schema.{PATH}",
        ),
        (
            "/generate",
            {"inputs": "a", "parameters": {"grammar": {"type": "json", "value": SCHEMA}}},
            f"parameters.grammar.value.{PATH}",
        ),
        (
            CHAT,
            {**HELLO, "tools": [tool("f", {}), tool("g", SCHEMA)], "tool_choice": "required"},
            f"tools[1].function.parameters.{PATH}",
        ),
    ],
)
def test_what_is_ignored_is_named_in_a_header(path: str, body: dict[str, Any], place: str) -> None:
    exchange = ask(path, body)
    assert (exchange.status, exchange.headers["x-msx-ignored"]) == (200, place)


@pytest.mark.parametrize(
    "body",
    [
        HELLO,
        {**HELLO, "tools": [tool("g", SCHEMA, strict=True)]},
        {**HELLO, "tools": [tool("f", {}), tool("g", SCHEMA, strict=True)], "tool_choice": {"function": {"name": "f"}}},
    ],
)
def test_where_nothing_is_held_nothing_is_ignored(body: dict[str, Any]) -> None:
    exchange = ask(CHAT, body)
    assert (exchange.status, exchange.headers.get("x-msx-ignored")) == (200, None)


def test_an_engine_that_holds_everything_ignores_nothing() -> None:
    exchange = ask(
        CHAT, {**HELLO, **formatted(strict=True)}, Capabilities(generate=True, chat=True, constraints=("json_schema",))
    )
    assert (exchange.status, exchange.headers.get("x-msx-ignored")) == (200, None)


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        (CHAT, {**HELLO, **formatted(strict=True)}, f"response_format.json_schema.schema.{PATH}"),
        (
            CHAT,
            {**HELLO, "tools": [tool("f", {}), tool("g", SCHEMA, strict=True)], "tool_choice": "required"},
            f"tools[1].function.parameters.{PATH}",
        ),
        (
            "/v1/responses",
            {
                "input": "a",
                "tools": [{"type": "function", "name": "g", "parameters": SCHEMA, "strict": True}],
                "tool_choice": "required",
            },
            f"tools[0].parameters.{PATH}",
        ),
    ],
)
def test_a_strict_schema_is_refused_by_the_place_that_was_sent(path: str, body: dict[str, Any], place: str) -> None:
    exchange = ask(path, body)
    assert exchange.status == 400
    assert exchange.json["error"]["param"] == place
    assert exchange.json["error"]["message"].startswith(f"{place}: a text cannot be held to uniqueItems; leave it out")


@pytest.mark.parametrize("body", [{"guided_json": deep(60)}, {"tools": [tool("f", deep(60))]}])
def test_a_schema_that_is_nested_too_deeply(body: dict[str, Any]) -> None:
    exchange = ask(CHAT, {**HELLO, **body})
    assert exchange.status == 400
    assert "nested more than 100 levels deep" in exchange.json["error"]["message"]


@pytest.fixture
def usual_recursion_limit() -> Iterator[None]:
    """Hypothesis raises it in the tests' own process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_recursion_limit")
def test_a_body_that_is_nested_too_deeply() -> None:
    async def test() -> None:
        body = b'{"messages": [], "chat_template_kwargs": {"a": ' + b"[" * 4000 + b"]" * 4000 + b"}}"
        exchange = await Speaker().ask(CHAT, body)
        assert exchange.status == 400
        assert exchange.json["error"]["message"] == (
            "The request body (without a content type) is not valid JSON: it is nested too deeply."
        )

    run(test())
