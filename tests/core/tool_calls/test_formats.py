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

V3 = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>{}\n```json\n{{"a": "}}{{"}}\n```<｜tool▁call▁end｜>'
V31 = '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>'
K2 = '<|tool_call_begin|>functions.{}:{}<|tool_call_argument_begin|>{{"a": {{}}}}<|tool_call_end|>'
INTERN = '<|action_start|><|plugin|>\n{"name": "f", "parameters": {"a": "<|action_end|>"}}<|action_end|>'
GLM = """<tool_call>f
<arg_key>text</arg_key>
<arg_value>a < b</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>"""
MINIMAX = """<minimax:tool_call>
<invoke name="f">
<parameter name="text">a
b</parameter>
<parameter name="days">3</parameter>
</invoke>
<invoke name="g">
</invoke>
</minimax:tool_call>"""

SEED = """<seed:tool_call>
<function=f>
<parameter=text>a
b</parameter>
<parameter=days>3</parameter>
</function>
<function=g>
</function>
</seed:tool_call>"""

DSML = """<｜DSML｜function_calls>
<｜DSML｜invoke name="f">
<｜DSML｜parameter name="text" string="true">3</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">[1, {}]</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="g">
</｜DSML｜invoke>
</｜DSML｜function_calls>"""
GEMMA = '<|tool_call>call:f{days:[1,{a:<|"|>}<|"|>}],text:<|"|>a "b", {c}<|"|>}<tool_call|>'
OF_GEMMA = ("f", '{"days": [1, {"a": "}"}], "text": "a \\"b\\", {c}"}')


def deepseek(*calls: str) -> str:
    return f"<｜tool▁calls▁begin｜>{chr(10).join(calls)}<｜tool▁calls▁end｜>"


def kimi(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


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
    (
        "deepseek_v3",
        f"Well.\n\n{deepseek(V3.format('f'), V3.format('g'))}",
        "Well.",
        [("f", '{"a": "}{"}'), ("g", '{"a": "}{"}')],
    ),
    ("deepseek_v3", f"{deepseek(V31)} Done.", " Done.", [("f", '{"a": 1}')]),
    ("deepseek_v3", deepseek(V31, V31.replace("f<", "g<")), "", [("f", '{"a": 1}'), ("g", '{"a": 1}')]),
    ("deepseek_v3", V31 + "\n" + V31, "", [("f", '{"a": 1}')] * 2),
    ("deepseek_v3", deepseek(V31)[:-20], "", [("f", '{"a": 1}')]),
    ("deepseek_v3", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a"', "", [("f", '{"a"')]),
    ("deepseek_v3", deepseek(V31.replace("f<", "h<")), deepseek(V31.replace("f<", "h<")), []),
    ("deepseek_v3", deepseek(V31, "x"), "\nx<｜tool▁calls▁end｜>", [("f", '{"a": 1}')]),
    ("deepseek_v3", "<｜tool▁calls▁begin｜>\nno", "<｜tool▁calls▁begin｜>\nno", []),
    ("deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", []),
    ("deepseek_v3", "<｜tool▁call▁begin｜>function<｜tool▁se", "<｜tool▁call▁begin｜>function<｜tool▁se", []),
    ("deepseek_v3", "<think>a</think>\n" + deepseek(V31), "<think>a</think>", [("f", '{"a": 1}')]),
    (
        "kimi_k2",
        f"Look: {kimi(K2.format('f', 0), K2.format('g', 1))}",
        "Look:",
        [("f", '{"a": {}}'), ("g", '{"a": {}}')],
    ),
    ("kimi_k2", f"{kimi(K2.format('f', 12))}\nSo.", "\nSo.", [("f", '{"a": {}}')]),
    ("kimi_k2", K2.format("f", 0), "", [("f", '{"a": {}}')]),
    ("kimi_k2", "<|tool_call_begin|>f<|tool_call_argument_begin|>{}", "", [("f", "{}")]),
    ("kimi_k2", kimi(K2.format("h", 0)), kimi(K2.format("h", 0)), []),
    (
        "kimi_k2",
        kimi(K2.format("f", 0), K2.format("h", 1)),
        f"{K2.format('h', 1)}<|tool_calls_section_end|>",
        [("f", '{"a": {}}')],
    ),
    ("kimi_k2", "<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>", []),
    ("kimi_k2", "a <|tool_call", "a <|tool_call", []),
    ("internlm", f"I ask.\n{INTERN}", "I ask.", [("f", '{"a": "<|action_end|>"}')]),
    ("internlm", INTERN + INTERN, "", [("f", '{"a": "<|action_end|>"}')] * 2),
    ("internlm", f"{INTERN}\nDone", "\nDone", [("f", '{"a": "<|action_end|>"}')]),
    ("internlm", '<|action_start|><|plugin|>{"name": "f", "parameters": {"a"', "", [("f", '{"a"')]),
    ("internlm", "<|action_start|><|plugin|>no<|action_end|>", "<|action_start|><|plugin|>no<|action_end|>", []),
    ("internlm", "<|action_start|><|interpreter|>\n1", "<|action_start|><|interpreter|>\n1", []),
    ("granite", '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}, {"name": "g"}]', "", [("f", '{"a": 1}'), G]),
    ("granite", 'So: <|tool_call|> {"name": "g"} and', "So:and", [G]),
    ("granite", '[{"name": "g", "arguments": {}}]', "", [G]),
    ("granite", "<|tool_call|>[1]", "<|tool_call|>[1]", []),
    ("granite", '<|tool_call|>[{"name": "f", "arguments": {"a": 1', "", [("f", '{"a": 1')]),
    ("glm45", f"I look.\n{GLM}", "I look.", [("f", '{"text": "a < b", "days": 3}')]),
    ("glm45", f"{GLM}\n{GLM}", "", [("f", '{"text": "a < b", "days": 3}')] * 2),
    ("glm45", f"{GLM} Done", " Done", [("f", '{"text": "a < b", "days": 3}')]),
    ("glm45", "<tool_call>g\n</tool_call>", "", [G]),
    ("glm45", "<tool_call>g<arg_key>a</arg_key><arg_value>[1]</arg_value></tool_call>", "", [("g", '{"a": [1]}')]),
    ("glm45", GLM.replace("<tool_call>f", "<tool_call>h"), GLM.replace("<tool_call>f", "<tool_call>h"), []),
    ("glm45", '<tool_call>{"name": "f"}</tool_call>', '<tool_call>{"name": "f"}</tool_call>', []),
    ("glm45", "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>ab", "", [("f", '{"text": "ab')]),
    ("glm45", "<tool_call>f\n<arg_key>text</arg_key>nothing", "", [("f", "{")]),
    ("glm45", "<tool_call>f <b>", "<b>", [("f", "{}")]),
    ("glm45", "a < b", "a < b", []),
    ("seed_oss", f"I look.\n{SEED}", "I look.", [("f", '{"text": "a\\nb", "days": 3}'), G]),
    ("seed_oss", SEED.replace("<seed:tool_call>\n", ""), "", [("f", '{"text": "a\\nb", "days": 3}'), G]),
    ("seed_oss", f"{SEED} Done", " Done", [("f", '{"text": "a\\nb", "days": 3}'), G]),
    ("seed_oss", "<seed:tool_call>no", "<seed:tool_call>no", []),
    ("minimax_m2", f"I look.\n{MINIMAX}", "I look.", [("f", '{"text": "a\\nb", "days": 3}'), G]),
    ("minimax_m2", f"{MINIMAX} Done", " Done", [("f", '{"text": "a\\nb", "days": 3}'), G]),
    ("minimax_m2", MINIMAX[:-12], "", [("f", '{"text": "a\\nb", "days": 3}'), G]),
    (
        "minimax_m2",
        '<minimax:tool_call>\n<invoke name="h"></invoke>',
        '<minimax:tool_call>\n<invoke name="h"></invoke>',
        [],
    ),
    ("minimax_m2", "<minimax:tool_call>no", "<minimax:tool_call>no", []),
    ("minimax_m2", '<invoke name="f"><parameter name="text">ab', "", [("f", '{"text": "ab')]),
    ("deepseek_v32", f"I look.\n\n{DSML}", "I look.", [("f", '{"text": "3", "days": [1, {}]}'), G]),
    ("deepseek_v32", f"{DSML} Done", " Done", [("f", '{"text": "3", "days": [1, {}]}'), G]),
    ("deepseek_v32", DSML[:-14], "", [("f", '{"text": "3", "days": [1, {}]}'), G]),
    (
        "deepseek_v32",
        '<｜DSML｜invoke name="g"><｜DSML｜parameter name="a" string="true">\nb\n</｜DSML｜parameter></｜DSML｜invoke>',
        "",
        [("g", '{"a": "\\nb\\n"}')],
    ),
    ("deepseek_v32", '<｜DSML｜function_calls><｜DSML｜invoke name="h">', DSML[:22] + '<｜DSML｜invoke name="h">', []),
    ("deepseek_v32", '<｜DSML｜invoke name="g"><｜DSML｜parameter name="a">1', "", [("g", "{")]),
    ("gemma4", f"I look. {GEMMA}", "I look.", [OF_GEMMA]),
    ("gemma4", f"{GEMMA}{GEMMA}", "", [OF_GEMMA] * 2),
    ("gemma4", f"{GEMMA} Done", " Done", [OF_GEMMA]),
    ("gemma4", "<|tool_call>call:g{}<tool_call|>", "", [G]),
    ("gemma4", "<|tool_call> call:g { } <tool_call|>", "", [G]),
    (
        "gemma4",
        '<|tool_call>call:g{<|"|>a b<|"|>: true, c : 1.5 ,d:none,e:some words,f:[]}<tool_call|>',
        "",
        [("g", '{"a b": true, "c": 1.5, "d": null, "e": "some words", "f": []}')],
    ),
    ("gemma4", '<|tool_call>call:f{text:<|"|>ab', "", [("f", '{"text": "ab')]),
    ("gemma4", '<|tool_call>call:f{text:<|"|>ab<|"', "", [("f", '{"text": "ab')]),
    ("gemma4", "<|tool_call>call:f{days:3", "", [("f", '{"days": ')]),
    ("gemma4", "<|tool_call>call:f{days:<b>", "<b>", [("f", '{"days": null}')]),
    ("gemma4", "<|tool_call>call:h{}<tool_call|>", "<|tool_call>call:h{}<tool_call|>", []),
    ("gemma4", "<|tool_call>no", "<|tool_call>no", []),
    ("gemma4", "<|tool_call>call:g", "<|tool_call>call:g", []),
    ("gemma4", "a < b <|tool", "a < b <|tool", []),
    (
        "hermes",
        '<response>\nhi\n</response>\n<tool_call>\n{"name": "g"}\n</tool_call>\n',
        "<response>\nhi\n</response>",
        [G],
    ),
    ("phi4_mini", "functools[1] is Python", "functools[1] is Python", []),
    ("phi4_mini", "<|tool_call|>no<|/tool_call|>", "<|tool_call|>no<|/tool_call|>", []),
]


def reader(name: str, *, parallel: bool = True) -> ToolCallReader:
    return FORMATS[name].reader(SCHEMAS, parallel=parallel)


@pytest.mark.parametrize(("name", "text", "content", "calls"), CASES)
def test_whole_and_letter_by_letter(name: str, text: str, content: str, calls: Calls) -> None:
    assert read(reader(name), text) == (content, calls)
    assert read(reader(name), *text) == (content, calls)


@pytest.mark.parametrize(("name", "text", "content", "calls"), CASES)
def test_in_two_pieces_at_every_place(name: str, text: str, content: str, calls: Calls) -> None:
    for place in range(len(text)):
        assert read(reader(name), text[:place], text[place:]) == (content, calls)


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
        "glm45": "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>abc",
        "seed_oss": "<seed:tool_call>\n<function=f>\n<parameter=text>abc",
        "minimax_m2": '<minimax:tool_call>\n<invoke name="f">\n<parameter name="text">abc',
        "deepseek_v3": '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"text": "abc',
        "deepseek_v32": '<｜DSML｜invoke name="f"><｜DSML｜parameter name="text" string="true">abc',
        "gemma4": '<|tool_call>call:f{text:<|"|>abc',
        "kimi_k2": '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"text": "abc',
        "internlm": '<|action_start|><|plugin|>{"name": "f", "parameters": {"text": "abc',
        "granite": '<|tool_call|>[{"name": "f", "arguments": {"text": "abc',
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
        ("deepseek_v3", deepseek(V31)),
        ("kimi_k2", kimi(K2.format("f", 0))),
        ("internlm", INTERN),
        ("granite", '<|tool_call|>[{"name": "f"}]'),
        ("glm45", GLM),
        ("seed_oss", SEED),
        ("minimax_m2", MINIMAX),
        ("deepseek_v32", DSML),
        ("gemma4", GEMMA),
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


def test_kimis_ids_are_those_that_it_writes() -> None:
    parts = [*reader("kimi_k2").feed(kimi(K2.format("f", 3), K2.format("g", 4)))]
    assert [part.id for part in parts if isinstance(part, ToolCall) and part.id] == ["functions.f:3", "functions.g:4"]


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
        ("{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] }}", "deepseek_v3"),
        ("<|tool_calls_section_begin|>{%- for call in calls -%}<|tool_call_begin|>", "kimi_k2"),
        ("{{ '<|action_start|><|plugin|>' }}", "internlm"),
        ("<|start_of_role|>assistant<|end_of_role|><|tool_call|>", "granite"),
        ("<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>", "glm45"),
        ("{{- '<seed:tool_call>\n<function=' + name -}}", "seed_oss"),
        ("{%- set begin = '<minimax:tool_call>' -%}", "minimax_m2"),
        ("{{ '<｜DSML｜' + block }}", "deepseek_v32"),
        ("{{- '<|tool_call>call:' + name -}}", "gemma4"),
    ],
)
def test_the_template_tells_the_format(template: str, name: str) -> None:
    assert format_of_template(template) == name


@pytest.mark.parametrize("name", [*FORMATS])
def test_what_is_told_of_whole_calls_is_json(name: str) -> None:
    for case, text, _, calls in CASES:
        if case == name and text[-1] in "]})>":
            assert all(isinstance(json.loads(arguments), dict) for _, arguments in calls)
