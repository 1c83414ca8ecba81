"""gpt-oss's channels: whole, and letter by letter."""

from __future__ import annotations

import pytest

from msx_core.tool_calls import FORMATS, format_of_template, gpt_oss
from tests.core.tool_calls.reading import Calls, read

THOUGHT = "<|channel|>analysis<|message|>hm<|end|>"
WEATHER = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"at": "Bonn"}<|call|>'
CALL: Calls = [("weather", '{"at": "Bonn"}')]
CASES: dict[str, tuple[str, str, Calls]] = {
    "an answer": (f"{THOUGHT}<|start|>assistant<|channel|>final<|message|>Yes.<|return|>", "«hm»Yes.", []),
    "the last mark is left out": (f"{THOUGHT}<|start|>assistant<|channel|>final<|message|>Yes.", "«hm»Yes.", []),
    "a call": (f"{THOUGHT}<|start|>assistant{WEATHER}", "«hm»", CALL),
    "the recipient before the channel": (
        ' to=functions.weather<|channel|>commentary json<|message|>{"at": "Bonn"}<|call|>', "", CALL,
    ),
    "what it tells the user before a call": (
        f"<|channel|>commentary<|message|>I look.<|end|><|start|>assistant{WEATHER}", "I look.", CALL,
    ),
    "two calls": (f"{WEATHER}<|start|>assistant{WEATHER}", "", CALL * 2),
    "a tool that the client has not": ("<|channel|>commentary to=browser.search<|message|>{}<|call|>", "«{}»", []),
    "no channels": ('{"a": "<b>"}', '{"a": "<b>"}', []),
    "cut in its thoughts": ("<|channel|>analysis<|message|>I wond", "«I wond»", []),
    "cut in a head": (f"{THOUGHT}<|start|>assistant<|channel|>fin", "«hm»", []),
    "cut in a mark": (f"{THOUGHT}<|start|>assistant<|channel|>final<|message|>Yes.<|ret", "«hm»Yes.<|ret", []),
    "a head that does not end": (f"<|channel|>{'x' * 500}", f"<|channel|>{'x' * 500}", []),
    "text between messages": (f"{THOUGHT} \n<|start|>assistant<|channel|>final<|message|>Yes.", "«hm»Yes.", []),
    "no end of a message": (
        "<|channel|>analysis<|message|>hm<|start|>assistant<|channel|>final<|message|>Yes.", "«hm»Yes.", [],
    ),
    "nothing": ("", "", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_whole_and_letter_by_letter(name: str) -> None:
    text, content, calls = CASES[name]
    assert read(gpt_oss.reader({"weather": {}}, parallel=True), text) == (content, calls)
    assert read(gpt_oss.reader({"weather": {}}, parallel=True), *text) == (content, calls)


def test_one_call_at_most() -> None:
    text = f"{WEATHER}<|start|>assistant{WEATHER}"
    assert read(gpt_oss.reader({"weather": {}}, parallel=False), *text) == ("", CALL)


def test_its_template_is_known() -> None:
    assert format_of_template("{{ '<|start|>assistant<|channel|>analysis<|message|>' }}") == "gpt_oss"
    assert FORMATS["gpt_oss"].NEEDS_SPECIAL_TOKENS
