"""Reasoning, apart from the answer and its calls."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.reasoning import FORMATS, ReasoningFirst
from msx_core.tool_calls import hermes, kimi_k2
from tests.core.tool_calls.reading import Calls, read

CASES: list[tuple[str, str, str, Calls]] = [
    ("qwen3", "<think>\nwell\n</think>\n\nYes.", "«well\n»Yes.", []),
    ("qwen3", "<think></think>Yes.", "Yes.", []),
    ("qwen3", "Yes. </think>", "Yes. </think>", []),
    ("qwen3", "  <thin", "  <thin", []),
    ("qwen3", "<think>cut", "«cut»", []),
    ("qwen3", "<think>cut</thi", "«cut</thi»", []),
    ("qwen3", '<think>hm</think>\n{"name": "f"}', "«hm»", [("f", "{}")]),
    ("qwen3", '<think>{"name": "f"}</think>No.', '«{"name": "f"}»No.', []),
    ("deepseek_r1", "well\n</think>\n\nYes.", "«well\n»Yes.", []),
    ("deepseek_r1", "<think>well</think>Yes.", "«well»Yes.", []),
    ("deepseek_r1", "cut", "«cut»", []),
    ("qwen3", "", "", []),
    ("deepseek_v3", "<think>well</think>Yes.", "«well»Yes.", []),
    ("deepseek_v3", "Yes.", "Yes.", []),
    ("ernie45", "well\n</think>\n\n<response>\nYes\nand no.\n</response>\n", "«well\n»Yes\nand no.", []),
    ("ernie45", "well</think>\nYes.", "«well»Yes.", []),
    ("ernie45", 'well</think>\n\n<tool_call>\n{"name": "f"}\n</tool_call>\n', "«well»", [("f", "{}")]),
    ("ernie45", "<think>well</think><response>a < b", "«well»a < b", []),
    ("ernie45", "well</think><response>cut</resp", "«well»cut</resp", []),
    ("gemma4", "<|channel>thought\nwell\n<channel|>Yes.", "«well\n»Yes.", []),
    ("gemma4", "<|channel>thought\n<channel|>Yes.", "Yes.", []),
    ("gemma4", "<|channel>final", "<|channel>final", []),
    ("granite", "Here is my thought process: well Here is my response: Yes.", "« well » Yes.", []),
    ("granite", "Here's my thought process:\nHere's", "«Here's»", []),
    ("granite", "Here is my idea: no.", "Here is my idea: no.", []),
    ("granite", "Yes. Here is my response: no.", "Yes. Here is my response: no.", []),
    ("kimi_k2", "<think>well</think>Yes.", "«well»Yes.", []),
    ("kimi_k2", "<think>well<|tool_calls_section_begin|>", "«well»<|tool_calls_section_begin|>", []),
    ("mistral", "[THINK]well[/THINK]Yes.", "«well»Yes.", []),
    ("mistral", "[THINK]well[/THIN", "«well[/THIN»", []),
    ("mistral", "[THIS]", "[THIS]", []),
    ("seed_oss", "<seed:think>well</seed:think>Yes.", "«well»Yes.", []),
    ("seed_oss", "Yes.", "Yes.", []),
]


@pytest.mark.parametrize(("name", "text", "content", "calls"), CASES)
def test_whole_and_letter_by_letter(name: str, text: str, content: str, calls: Calls) -> None:
    def reader() -> ReasoningFirst:
        return FORMATS[name].reader(hermes.reader({"f": {}}, parallel=True))

    assert read(reader(), text) == (content, calls)
    assert read(reader(), *text) == (content, calls)
    for place in range(len(text)):
        assert read(reader(), text[:place], text[place:]) == (content, calls)


@pytest.mark.parametrize(
    ("values", "content"),
    [
        ({"thinking": True}, "«well»Yes."),
        ({"enable_thinking": True}, "«well»Yes."),
        ({"thinking": False}, "well</think>Yes."),
        (None, "well</think>Yes."),
    ],
)
def test_the_template_is_told_whether_the_model_thinks(values: dict[str, Any] | None, content: str) -> None:
    reader = FORMATS["deepseek_v3"].reader(hermes.reader({}, parallel=True), values)
    assert read(reader, *"well</think>Yes.") == (content, [])


def test_kimis_calls_end_what_it_thinks() -> None:
    text = "<think>well<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    reader = FORMATS["kimi_k2"].reader(kimi_k2.reader({"f": {}}, parallel=True))
    assert read(reader, *text) == ("«well»", [("f", "{}")])
