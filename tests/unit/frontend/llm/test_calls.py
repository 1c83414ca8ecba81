"""Content and calls, wherever the text is cut."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_frontend.llm.calls import Call, Objects, Reader, reader_of
from msx_frontend.llm.tools import Tools, tools_of

TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": "}\\"{"}}\n</tool_call>'
F = ("f", '{"x":"}\\"{"}')


def tools(choice: Any = None, parallel: bool = True) -> Tools:
    return tools_of(TOOLS, choice, parallel)


def read(reader: Reader, *pieces: str) -> tuple[str, list[tuple[str, str]]]:
    """The content, and the name and arguments of each call."""
    content = ""
    calls: dict[int, tuple[str, str]] = {}
    for part in [*(part for piece in pieces for part in reader.feed(piece)), *reader.finish()]:
        if isinstance(part, str):
            assert part
            content += part
        elif part.id:
            assert part.number == len(calls)
            calls[part.number] = (part.name, part.arguments)
        else:
            name, arguments = calls[part.number]
            calls[part.number] = (name, arguments + part.arguments)
    return content, list(calls.values())


TEXTS = [
    ("hello", "hello", []),
    ("a { b }", "a { b }", []),
    (f"Let me see.\n{CALL}", "Let me see.", [F]),
    (f"{CALL}\n{CALL}", "", [F, F]),
    (f"  {CALL}  ", "", [F]),
    ('<tool_call>{"name": "h"}</tool_call>', '<tool_call>{"name": "h"}</tool_call>', []),
    ("<tool_call>nothing</tool_call>", "<tool_call>nothing</tool_call>", []),
    ('<tool_call>{"name": "g", "arguments": {}}', "", [("g", "{}")]),
    ("<tool_call>{", "<tool_call>{", []),
    ("a < b <tool", "a < b <tool", []),
    ('{"name": "f", "parameters": {"a": 1}}', "", [("f", '{"a":1}')]),
    ('{"name": "f"}; {"name": "g", "arguments": "{}"}', "", [("f", "{}"), ("g", "{}")]),
    ('[{"name": "f"}, {"name": "g"}]', "", [("f", "{}"), ("g", "{}")]),
    ('{"name": "h"}', '{"name": "h"}', []),
    ('{"name": "f"} and more', '{"name": "f"} and more', []),
    ('{"a": 1', '{"a": 1', []),
    ('say {"name": "f"}', 'say {"name": "f"}', []),
    ("trailing  ", "trailing  ", []),
    ('<tool_call>{"name": ["f"]}</tool_call>', '<tool_call>{"name": ["f"]}</tool_call>', []),
]


@pytest.mark.parametrize(("text", "content", "calls"), TEXTS)
def test_the_models_own_choice(text: str, content: str, calls: list[tuple[str, str]]) -> None:
    assert read(reader_of(tools()), text) == (content, calls)
    assert read(reader_of(tools()), *text) == (content, calls)


@given(text=st.sampled_from([text for text, _, _ in TEXTS]), cuts=st.lists(st.integers(0, 80), max_size=6))
def test_it_does_not_matter_where_the_text_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(places)]
    assert read(reader_of(tools()), *pieces) == read(reader_of(tools()), text)


def test_content_is_not_held_up() -> None:
    reader = reader_of(tools())
    assert list(reader.feed("a b")) == ["a b"]
    assert list(reader.feed(" <")) == []
    assert list(reader.feed("b")) == [" <b"]


def test_one_call_where_the_client_wants_one() -> None:
    assert read(reader_of(tools(parallel=False)), CALL + CALL) == ("", [F])
    assert read(reader_of(tools(parallel=False)), '{"name": "f"};{"name": "g"}') == ("", [("f", "{}")])


def test_a_named_call_grows() -> None:
    reader = reader_of(tools({"name": "g"}))
    first, second = [*reader.feed('{"a"'), *reader.feed(": 1}")]
    assert isinstance(first, Call)
    assert (first.name, first.arguments, first.id[:5]) == ("g", '{"a"', "call_")
    assert second == Call(0, ": 1}")
    assert read(reader_of(tools({"name": "g"})), "{", "}") == ("", [("g", "{}")])


def test_required_calls_come_when_they_are_complete() -> None:
    reader = reader_of(tools("required"))
    assert list(reader.feed('[{"name": "f", "arguments": {"a": ')) == []
    (call,) = reader.feed('1}}, {"name"')
    assert isinstance(call, Call)
    assert (call.number, call.name, call.arguments) == (0, "f", '{"a":1}')
    (call,) = reader.feed(': "g", "arguments": {}}]')
    assert isinstance(call, Call)
    assert (call.number, call.name) == (1, "g")
    assert list(reader.finish()) == []
    assert read(reader_of(tools("required")), '[{"name": ', '"f"') == ('[{"name": "f"', [])


def test_without_tools_all_is_content() -> None:
    assert read(reader_of(Tools()), CALL) == (CALL, [])
    assert read(reader_of(tools("none")), CALL) == (CALL, [])


def test_objects() -> None:
    objects = Objects()
    assert objects.feed('x {"a": "\\\\"} } {') == ['{"a": "\\\\"}']
    assert objects.feed('"}": {}}') == ['{"}": {}}']
    assert len(objects.found) == 2
