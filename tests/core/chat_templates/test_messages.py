from __future__ import annotations

from typing import Any

import pytest

from msx_core.chat_templates.messages import prepared
from msx_sdk import InvalidInput


def test_texts_stay_as_they_are() -> None:
    messages = [{"role": "user", "content": "Hi", "name": "x"}]
    assert prepared(messages) == messages


def test_parts_become_one_text() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert prepared([{"role": "user", "content": parts}]) == [{"role": "user", "content": "one\ntwo"}]


def test_a_developer_is_the_system() -> None:
    assert prepared([{"role": "developer", "content": "x"}])[0]["role"] == "system"


@pytest.mark.parametrize(
    ("arguments", "expected"), [('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1}), ("", {}), (None, {})]
)
def test_arguments_become_objects(arguments: Any, expected: dict[str, int]) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"arguments": arguments}}]}
    (result,) = prepared([message])
    assert result["content"] == ""
    assert result["tool_calls"] == [{"id": "1", "function": {"arguments": expected}}]
    assert message["tool_calls"][0]["function"]["arguments"] is arguments  # type: ignore[index]


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"content": 5}, r"messages\[0\]\.content: expected a text or a list of parts"),
        (
            {"content": [{"type": "image_url"}]},
            r"messages\[0\]\.content\[0\]: this model reads text alone.*'image_url'",
        ),
        ({"content": [7]}, r"messages\[0\]\.content\[0\]: .* not 7"),
        ({"tool_calls": [7]}, r"messages\[0\]\.tool_calls\[0\]\.function: expected an object"),
        (
            {"tool_calls": [{"function": {"arguments": "{"}}]},
            r"tool_calls\[0\]\.function\.arguments: expected a JSON obj",
        ),
        (
            {"tool_calls": [{"function": {"arguments": "[1]"}}]},
            r"tool_calls\[0\]\.function\.arguments: expected a JSON",
        ),
    ],
)
def test_what_is_wrong_is_named(message: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        prepared([message])
