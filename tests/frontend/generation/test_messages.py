from __future__ import annotations

from typing import Any

import pytest

from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.messages import template_messages
from tests.frontend.generation.images.samples import finder


def one(**message: Any) -> dict[str, Any]:
    return template_messages([message], finder())[0]


def test_contents_become_texts() -> None:
    assert one(role="user", content="hi", name="me") == {"role": "user", "content": "hi", "name": "me"}
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]
    assert one(role="user", content=parts)["content"] == "a\nb\nc"
    assert one(role="assistant", content=[{"type": "refusal", "refusal": "no"}])["content"] == "no"
    assert one(role="assistant", content=None)["content"] == ""


def test_roles_become_those_that_templates_know() -> None:
    assert one(role="developer", content="x")["role"] == "system"
    assert one(role="function", content="x")["role"] == "tool"


def test_arguments_become_objects() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    message = one(role="assistant", content=None, tool_calls=[call])
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": {"a": 1}}
    assert call["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert "tool_calls" not in one(role="assistant", content="x", tool_calls=[])


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "x"}, "messages[0].role: expected one of system, developer, user, assistant, tool, function"),
        ({"role": "bird", "content": "x"}, "messages[0].role: expected one of"),
        ({"role": ["user"], "content": "x"}, "messages[0].role: expected one of"),
        ({"role": "user"}, "messages[0].content: needed"),
        ({"role": "user", "content": 3}, "messages[0].content: expected a text or a list of parts, not int"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
            "messages[0].content[0]: expected a part of the type text; this model reads no image_url",
        ),
        ({"role": "user", "content": [5]}, "messages[0].content[0]: expected a part of the type text"),
        ({"role": "user", "content": [{"type": ["text"]}]}, "messages[0].content[0]: expected a part"),
        ({"role": "assistant", "tool_calls": 3}, "messages[0].tool_calls: expected a list, not int"),
        ({"role": "assistant", "tool_calls": [{}]}, "messages[0].tool_calls[0].function.name: needed"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
            "messages[0].tool_calls[0].function.arguments: expected a text of JSON: ",
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[" * 10_000}}]},
            "messages[0].tool_calls[0].function.arguments: its JSON is nested too deeply",
        ),
    ],
)
def test_a_wrong_message_is_named(message: dict[str, Any], text: str) -> None:
    with pytest.raises(WrongParameter) as wrong:
        template_messages([message], finder())
    assert wrong.value.message.startswith(text)


def test_none_at_all() -> None:
    with pytest.raises(WrongParameter, match="messages: at least one"):
        template_messages([], finder())
