"""Which reader a request's text gets, and calls that must be made; the formats have tests of their own, in the SDK."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.tool_calls.parts import ToolCall, ToolCallReader
from msx_frontend.generation.calls import arguments_of, format_of, keeps_special, parse_options, reader_of
from msx_frontend.generation.tools import Tools, tools_of
from msx_sdk.generation import Capabilities, ParseOptions
from tests.core.tool_calls.reading import read

TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
F = ("f", "{}")


def tools(choice: Any = None, parallel: bool = True) -> Tools:
    return tools_of(TOOLS, choice, parallel)


def reader(of: Tools, **offered: Any) -> ToolCallReader:
    return reader_of(of, Capabilities(**offered))


def test_the_models_own_choice_is_read_in_its_format() -> None:
    assert read(reader(tools()), CALL) == ("", [F])
    assert read(reader(tools(), tool_parser="mistral"), CALL) == (CALL, [])
    assert read(reader(tools(), tool_parser="mistral"), "[TOOL_CALLS]f{}") == ("", [F])
    assert format_of(Capabilities(tool_parser="of a newer handler")).NAME == "hermes"


def test_a_format_of_all_that_a_model_writes_is_read_without_tools() -> None:
    text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes."
    for of in (tools_of(None, None, True), tools("none"), tools()):
        assert read(reader(of, tool_parser="gpt_oss"), text) == ("«hm»Yes.", [])
        assert keeps_special(of, Capabilities(tool_parser="gpt_oss"))
    own = reader_of(tools(), Capabilities(tool_parser="gpt_oss"), reasoning=False)
    assert read(own, text) == ("Yes.", [])
    assert not keeps_special(tools("none"), Capabilities(tool_parser="mistral"))


def test_content_is_not_held_up() -> None:
    own = reader(tools())
    assert list(own.feed("a b")) == ["a b"]
    assert list(own.feed(" <")) == []
    assert list(own.feed("b")) == [" <b"]


def test_one_call_where_the_client_wants_one() -> None:
    assert read(reader(tools(parallel=False)), CALL + CALL) == ("", [F])


def test_a_named_call_grows() -> None:
    named = reader(tools({"name": "g"}))
    first, second = [*named.feed('{"a"'), *named.feed(": 1}")]
    assert isinstance(first, ToolCall)
    assert (first.name, first.arguments, first.id[:5]) == ("g", '{"a"', "call_")
    assert second == ToolCall(0, ": 1}")
    assert read(reader(tools({"name": "g"})), "{", "}") == ("", [("g", "{}")])


def test_required_calls_grow() -> None:
    required = reader(tools("required"))
    (first, second) = [*required.feed('[{"name": "f"'), *required.feed(', "arguments": {"a": ')]
    assert isinstance(first, ToolCall)
    assert (first.number, first.name, first.arguments) == (0, "f", "")
    assert second == ToolCall(0, '{"a": ')
    (end,) = required.feed('1}}, {"name"')
    assert end == ToolCall(0, "1}")
    (call,) = required.feed(': "g"')
    assert isinstance(call, ToolCall)
    assert (call.number, call.name) == (1, "g")
    assert list(required.feed(', "arguments": {}}]')) == [ToolCall(1, "{}")]
    assert list(required.finish()) == []


def test_required_calls_that_are_cut_are_not_content() -> None:
    assert read(reader(tools("required")), '[{"name": ', '"f"') == ("", [("f", "")])
    assert read(reader(tools("required")), '[{"name": ', '"f", "arguments": {"a": "b') == ("", [("f", '{"a": "b')])
    assert read(reader(tools("required")), '[{"na') == ("", [])


def test_without_tools_all_is_content() -> None:
    assert read(reader(Tools()), CALL) == (CALL, [])
    assert read(reader(tools("none")), CALL) == (CALL, [])


def test_reasoning_is_told_apart_where_the_model_says_so() -> None:
    assert read(reader(Tools()), "<think>hm</think>Yes") == ("<think>hm</think>Yes", [])
    assert read(reader(Tools(), reasoning_parser="qwen3"), "<think>hm</think>Yes") == ("«hm»Yes", [])
    assert read(reader(tools(), reasoning_parser="qwen3"), f"<think>hm</think>{CALL}") == ("«hm»", [F])
    assert read(reader(tools("required"), reasoning_parser="deepseek_r1"), '[{"name": "f"}]') == ("", [F])


def test_reasoning_may_follow_from_what_the_template_was_given() -> None:
    offered = Capabilities(reasoning_parser="deepseek_v3")
    assert read(reader_of(tools("none"), offered, {"thinking": True}), "hm</think>Yes.") == ("«hm»Yes.", [])
    assert read(reader_of(tools("none"), offered), "hm</think>Yes.") == ("hm</think>Yes.", [])


def test_marks_of_reasoning_that_are_special_tokens_are_kept() -> None:
    offered = Capabilities(reasoning_parser="mistral")
    assert keeps_special(tools("none"), offered)
    assert not keeps_special(tools("required"), offered)
    assert not keeps_special(tools("none"), Capabilities(reasoning_parser="qwen3"))
    assert not keeps_special(tools("none"), Capabilities(reasoning_parser="mistral", parses_reasoning=True))


def test_what_a_handler_parses_is_not_read_again() -> None:
    calls, thoughts = Capabilities(parses_calls=True), Capabilities(parses_reasoning=True, reasoning_parser="qwen3")
    assert read(reader_of(tools(), calls), CALL) == (CALL, [])
    assert read(reader_of(tools(), thoughts), f"<think>{CALL}") == ("<think>", [F])
    assert not keeps_special(tools(), Capabilities(parses_calls=True, tool_parser="mistral"))


def test_which_requests_a_handler_parses() -> None:
    calls, thoughts = Capabilities(parses_calls=True), Capabilities(parses_reasoning=True)
    assert parse_options(tools(parallel=False), calls, reasoning=False) == ParseOptions(reasoning=False, parallel=False)
    assert parse_options(tools("none"), thoughts) == ParseOptions()
    assert parse_options(tools("none"), calls) is None
    assert parse_options(tools("required"), calls) is None
    assert parse_options(tools(), Capabilities()) is None


@pytest.mark.parametrize("text", ["", '{"a": ', "5", "[" * 10_000])
def test_arguments_that_are_no_object(text: str) -> None:
    assert arguments_of(ToolCall(0, text, "c", "f")) == {}
