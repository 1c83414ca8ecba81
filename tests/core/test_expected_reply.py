"""Comparison of a reply with an example's expected one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msx_core.expected_reply import ExpectedReplies, difference
from msx_sdk import HandlerLoadError
from msx_sdk.testing import LocalModel


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([[2.0, 4.001], [6, 8]], [[2, 4], [6, 8]]),
        ({"b": 1, "a": [1, 2]}, {"a": [1, 2], "b": 1}),
        ({"small": [1e-5], "large": [1000.5]}, {"small": [1e-5], "large": [1000]}),
        ({"label": "cat", "none": None, "yes": True}, {"label": "cat", "none": None, "yes": True}),
        ([0.0, 5e-4], [0, 0]),
        ([], []),
        ("text", "text"),
    ],
)
def test_equal_within_the_tolerance(given: Any, wanted: Any) -> None:
    assert difference(given, wanted, 1e-3) == ""


@pytest.mark.parametrize(
    ("given", "wanted", "words"),
    [
        ([[2, 4.1]], [[2, 4]], "[0][1] is 4.1, expected 4 (tolerance: 0.004)"),
        ({"small": [2e-5], "large": [1000]}, {"small": [1e-5], "large": [1000]}, "small[0] is 2e-05, expected 1e-05"),
        ({"cat": 0.9, "dog": 0.2}, {"cat": 0.9, "dog": 0.1}, "dog is 0.2, expected 0.1 (tolerance: 0.0009)"),
        ({"label": "cat"}, {"label": "dog"}, "label is 'cat', expected 'dog'"),
        ({"a": 1}, {"b": 1}, "it has a where b is expected"),
        ([1, 2, 3], [1, 2], "it has [2] where the end of the reply is expected"),
        ([1], [1, 2], "it has the end of the reply where [1] is expected"),
        ([None], [1], "[0] is None, expected 1"),
        (["nan"], [1], "[0] is 'nan', expected 1"),
        (float("nan"), 1, "the reply is nan, expected 1"),
        ([[1]], [1], "it has [0][0] where [0] is expected"),
    ],
)  # fmt: skip
def test_what_differs(given: Any, wanted: Any, words: str) -> None:
    assert words in difference(given, wanted, 1e-3)


def echo_twice(data: Any, context: Any) -> Any:
    return [2 * item["body"] if isinstance(item["body"], list) else item["body"] for item in data]


async def echo_later(data: Any, context: Any) -> Any:
    return echo_twice(data, context)


@pytest.mark.parametrize("handler", [echo_twice, echo_later])
def test_a_model_that_answers_otherwise_does_not_load(handler: Any) -> None:
    right = {"example": {"body": [1]}, "expected": {"outputs": [1, 1]}}
    with LocalModel(handler, config=right) as model:
        assert model.predict([[3]])[0].json() == [3, 3]
    wrong = {"example": [{"body": [1]}, "text"], "expected": {"outputs": [[1, 1], "other"]}}
    with pytest.raises(HandlerLoadError) as caught, LocalModel(handler, config=wrong):
        pass
    assert "the reply to example 1 is not the expected one: the reply is 'text', expected 'other'" in str(caught.value)


def test_the_yamls_example_goes_before_the_handlers() -> None:
    seen: list[Any] = []

    class Own:
        example = "own"

        def handle(self, data: Any, context: Any) -> Any:
            seen.extend(item["body"] for item in data)
            return ["ok" for _ in data]

    with LocalModel(Own(), config={"example": "given"}):
        assert seen == ["given"]


def test_a_reply_that_is_not_json_is_text() -> None:
    replies = ExpectedReplies(["plain"], 1e-3)
    replies.check(0, b"plain")
    with pytest.raises(HandlerLoadError, match="it has a where the reply is expected"):
        replies.check(0, json.dumps({"a": 1}).encode())
    with pytest.raises(HandlerLoadError, match="expected 'plain'"):
        replies.check(0, b"\xff\xfe")
