"""Each format that models write calls in: the same, wherever the text is cut."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.tool_calls import FORMATS, format_of_template
from msx_core.tool_calls.parts import ToolCall, ToolCallReader
from tests.core.tool_calls.reading import Calls, read

SCHEMAS: dict[str, dict[str, Any]] = {
    "f": {"type": "object", "properties": {"text": {"type": "string"}, "days": {"type": "integer"}}},
    "g": {},
}
HERMES = '<tool_call>\n{"name": "f", "arguments": {"x": "}\\"{"}}\n</tool_call>'
F = ("f", '{"x": "}\\"{"}')
CODER = """<tool_call>
<function=f>
<parameter=text>
a <b>
"c"
</parameter>
<parameter=days>
3
</parameter>
</function>
</tool_call>"""
G = ("g", "{}")

CASES: list[tuple[str, str, str, Calls]] = [
    ("hermes", "hello", "hello", []),
    ("hermes", "a { b }", "a { b }", []),
    ("hermes", f"Let me see.\n{HERMES}", "Let me see.", [F]),
    ("hermes", f"{HERMES}\n{HERMES}", "", [F, F]),
    ("hermes", f"  {HERMES}  ", "", [F]),
    ("hermes", f"{HERMES} Done.", " Done.", [F]),
    ("hermes", '<tool_call>{"name": "h"}</tool_call>', '<tool_call>{"name": "h"}</tool_call>', []),
    ("hermes", "<tool_call>nothing</tool_call>", "<tool_call>nothing</tool_call>", []),
    ("hermes", "<tool_call></tool_call>", "<tool_call></tool_call>", []),
    ("hermes", '<tool_call>{"name": "g", "arguments": {}}', "", [G]),
    ("hermes", '<tool_call>{"arguments": {"a": [1, {}]}, "name": "g"}</tool_call>', "", [("g", '{"a": [1, {}]}')]),
    ("hermes", '<tool_call>[{"name": "g"}, {"name": "g"}]</tool_call>', "", [G, G]),
    ("hermes", "<tool_call>{", "<tool_call>{", []),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1', "", [("f", '{"a": 1')]),
    (
        "hermes",
        '<tool_call>{"name": "f", "arguments": {"x": "</tool_call>"}}</tool_call>',
        "",
        [("f", '{"x": "</tool_call>"}')],
    ),
    ("hermes", "a < b <tool", "a < b <tool", []),
    ("hermes", '{"name": "f", "parameters": {"a": 1}}', "", [("f", '{"a": 1}')]),
    ("hermes", '{"name": "f"}; {"name": "g", "arguments": "{}"}', "", [("f", "{}"), G]),
    ("hermes", '{"name": "f", "arguments": "{\\"a\\": 1}"}', "", [("f", '{"a": 1}')]),
    ("hermes", '{"name": "f", "arguments": null}', "", [("f", "{}")]),
    ("hermes", '[{"name": "f"}, {"name": "g"}]', "", [("f", "{}"), G]),
    ("hermes", '{"name": "h"}', '{"name": "h"}', []),
    ("hermes", '{"name": "f"} and more', "and more", [("f", "{}")]),
    ("hermes", '{"a": 1', '{"a": 1', []),
    ("hermes", "[1, 2]", "[1, 2]", []),
    ("hermes", 'say {"name": "f"}', 'say {"name": "f"}', []),
    ("hermes", "trailing  ", "trailing  ", []),
    ("hermes", '<tool_call>{"name": ["f"]}</tool_call>', '<tool_call>{"name": ["f"]}</tool_call>', []),
    ("hermes", '<think>I {"think"}</think>\n\n{"name": "g"}', '<think>I {"think"}</think>', [G]),
    (
        "hermes",
        '{"name": "f", "arguments": {"id": 1000000000000000000000000000000}}',
        "",
        [("f", f'{{"id": {10**30}}}')],
    ),
    ("mistral", '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g"}]', "", [("f", '{"a": 1}'), G]),
    ("mistral", 'Yes. [TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "abc"}]', "Yes.", [("f", "{}")]),
    ("mistral", '[TOOL_CALLS]f{"a": "}"}', "", [("f", '{"a": "}"}')]),
    ("mistral", '[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g{}', "", [("f", '{"a": 1}'), G]),
    ("mistral", '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": 1}', "", [("f", '{"a": 1}')]),
    ("mistral", '[TOOL_CALLS]f[ARGS]{"a"', "", [("f", '{"a"')]),
    ("mistral", "[TOOL_CALLS]h{}", "[TOOL_CALLS]h{}", []),
    ("mistral", "[TOOL_CALLS]", "[TOOL_CALLS]", []),
    ("mistral", "[TOOL_CALLS]f", "[TOOL_CALLS]f", []),
    ("mistral", "a [TOOL", "a [TOOL", []),
    ("mistral", '{"name": "f"}', '{"name": "f"}', []),
    ("pythonic", '[f(text="a, b)", days=3), g()]', "", [("f", '{"text": "a, b)", "days": 3}'), G]),
    (
        "pythonic",
        "[g(a=[1, {'b': None}], c=True, d=false)]",
        "",
        [("g", '{"a": [1, {"b": null}], "c": true, "d": false}')],
    ),
    ("pythonic", "<|python_start|>[g()]<|python_end|>", "", [G]),
    ("pythonic", "<|python_start|>[g()]<|python_end|> So.", " So.", [G]),
    ("pythonic", "[g(a=x + 1)]", "", [("g", '{"a": "x + 1"}')]),
    ("pythonic", "[g(a='it\\'s')]", "", [("g", '{"a": "it\'s"}')]),
    ("pythonic", "[g(a=1", "", [("g", "{")]),
    ("pythonic", "[h(a=1)]", "[h(a=1)]", []),
    ("pythonic", "[1] is a source", "[1] is a source", []),
    ("pythonic", "[a list]", "[a list]", []),
    ("pythonic", "g()", "g()", []),
    ("qwen3_coder", f"I look.\n\n{CODER}", "I look.", [("f", '{"text": "a <b>\\n\\"c\\"", "days": 3}')]),
    ("qwen3_coder", CODER + CODER, "", [("f", '{"text": "a <b>\\n\\"c\\"", "days": 3}')] * 2),
    ("qwen3_coder", "<tool_call><function=g></function></tool_call> Done", " Done", [G]),
    ("qwen3_coder", "<function=g>\n</function>", "", [G]),
    (
        "qwen3_coder",
        "<tool_call><function=g><parameter=a>[1]</parameter><parameter=b>some text</parameter></function></tool_call>",
        "",
        [("g", '{"a": [1], "b": "some text"}')],
    ),
    ("qwen3_coder", "<tool_call><function=g><parameter=a>True</parameter></function>", "", [("g", '{"a": true}')]),
    ("qwen3_coder", "<tool_call><function=f><parameter=text>\na\nb", "", [("f", '{"text": "a\\nb')]),
    (
        "qwen3_coder",
        "<tool_call><function=h></function></tool_call>",
        "<tool_call><function=h></function></tool_call>",
        [],
    ),
    ("qwen3_coder", "<tool_call>x</tool_call>", "<tool_call>x</tool_call>", []),
    ("qwen3_coder", "a < b", "a < b", []),
    ("glm4", '\nf\n{"text": "}\\n{"}', "", [("f", '{"text": "}\\n{"}')]),
    ("glm4", "I look.\nf\n{}\n g \n\n{}\n", "I look.", [("f", "{}"), G]),
    ("glm4", "f\nis a tool", "f\nis a tool", []),
    ("glm4", "f is a tool\n{}", "f is a tool\n{}", []),
    ("glm4", "h\n{}", "h\n{}", []),
    ("glm4", "a\n\n b \nf", "a\n\n b \nf", []),
    ("glm4", "\nhello \n", "\nhello \n", []),
    ("glm4", "f\n", "f\n", []),
    ("glm4", "g\n{} Done", " Done", [G]),
    ("glm4", 'f\n{"a": 1', "", [("f", '{"a": 1')]),
    (
        "phi4_mini",
        '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}, {"name": "g"}]<|/tool_call|>',
        "",
        [("f", '{"a": 1}'), G],
    ),
    ("phi4_mini", 'Yes. functools[{"name": "g", "arguments": {}}]', "Yes.", [G]),
    ("phi4_mini", "functools[1] is Python", "functools[1] is Python", []),
    ("phi4_mini", "<|tool_call|>no<|/tool_call|>", "<|tool_call|>no<|/tool_call|>", []),
]


def reader(name: str, *, parallel: bool = True) -> ToolCallReader:
    return FORMATS[name].reader(SCHEMAS, parallel=parallel)


@pytest.mark.parametrize(("name", "text", "content", "calls"), CASES)
def test_whole_and_letter_by_letter(name: str, text: str, content: str, calls: Calls) -> None:
    assert read(reader(name), text) == (content, calls)
    assert read(reader(name), *text) == (content, calls)


@given(case=st.sampled_from(CASES), cuts=st.lists(st.integers(0, 120), max_size=6))
def test_it_does_not_matter_where_the_text_is_cut(case: tuple[str, str, str, Calls], cuts: list[int]) -> None:
    name, text, content, calls = case
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert read(reader(name), *(text[begin:end] for begin, end in itertools.pairwise(places))) == (content, calls)


@given(name=st.sampled_from([*FORMATS]), text=st.text(alphabet='[]{}<>()=/,:" \\nfgtool_caTOOLCALS'))
def test_any_text_is_read_to_its_end(name: str, text: str) -> None:
    whole = read(reader(name), text)
    assert read(reader(name), *text) == whole
    if not whole[1]:
        assert whole[0] == text


@pytest.mark.parametrize("name", [*FORMATS])
def test_arguments_come_as_they_are_written(name: str) -> None:
    texts = {
        "hermes": '<tool_call>{"name": "f", "arguments": {"text": "abc',
        "mistral": '[TOOL_CALLS]f{"text": "abc',
        "glm4": 'f\n{"text": "abc',
        "phi4_mini": '<|tool_call|>[{"name": "f", "arguments": {"text": "abc',
        "gpt_oss": '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"text": "abc',
        "pythonic": '[f(text="abc",',
        "qwen3_coder": "<tool_call><function=f><parameter=text>\nabc",
    }
    parts = list(reader(name).feed(texts[name]))
    assert all(isinstance(part, ToolCall) for part in parts)
    assert "abc" in "".join(part.arguments for part in parts if isinstance(part, ToolCall))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", HERMES),
        ("mistral", "[TOOL_CALLS]f{}"),
        ("pythonic", "[f(),g()]"),
        ("qwen3_coder", CODER),
        ("glm4", "f\n{}\n"),
        ("phi4_mini", 'functools[{"name": "f"}]'),
    ],
)
def test_one_call_where_the_client_wants_one(name: str, text: str) -> None:
    twice = text if name == "pythonic" else text + text
    (call,) = read(reader(name, parallel=False), twice)[1]
    assert call[0] == "f"


def test_mistrals_ids_are_what_its_templates_demand() -> None:
    (call,) = reader("mistral").feed("[TOOL_CALLS]g{}")
    assert isinstance(call, ToolCall)
    assert len(call.id) == 9
    assert call.id.isalnum()


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ '<tool_call>' + x | tojson }}", "hermes"),
        ("<tool_call>\n<function=example>", "qwen3_coder"),
        ("[AVAILABLE_TOOLS]…[TOOL_CALLS]", "mistral"),
        ("in the format of [func_name1(params_name1=params_value1)]", "pythonic"),
        ('{"name": function name, "parameters": …}', "hermes"),
        ("# 可用工具 … 请使用 Json 格式表示调用的参数。", "glm4"),
        ("{{ message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' }}", "phi4_mini"),
        ("", "hermes"),
    ],
)
def test_the_template_tells_the_format(template: str, name: str) -> None:
    assert format_of_template(template) == name


@pytest.mark.parametrize("name", [*FORMATS])
def test_what_is_told_of_whole_calls_is_json(name: str) -> None:
    for case, text, _, calls in CASES:
        if case == name and text[-1] in "]})>":
            assert all(isinstance(json.loads(arguments), dict) for _, arguments in calls)
