"""Reasoning, apart from the answer and its calls."""

from __future__ import annotations

import pytest

from msx_core.reasoning import FORMATS, ReasoningFirst
from msx_core.tool_calls import hermes
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
]


@pytest.mark.parametrize(("name", "text", "content", "calls"), CASES)
def test_whole_and_letter_by_letter(name: str, text: str, content: str, calls: Calls) -> None:
    def reader() -> ReasoningFirst:
        return ReasoningFirst(hermes.reader({"f": {}}, parallel=True), inside=FORMATS[name])

    assert read(reader(), text) == (content, calls)
    assert read(reader(), *text) == (content, calls)
