"""Kimi K2's calls: `functions.NAME:NUMBER` and the arguments. This is the id that its chat template wants again."""

from functools import partial

from msx_core.tool_calls.named_calls import NamedCalls, NamedForm
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "kimi_k2"
OPEN, CLOSE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
BEGIN, ARGUMENTS, END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
TEMPLATE_MARKS: tuple[str, ...] = (BEGIN,)
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    calls = partial(NamedCalls, NamedForm(_name_of, BEGIN, (END,), CLOSE))
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: calls, BEGIN: calls})


def _name_of(head: str) -> tuple[str, str]:
    id = head.partition(ARGUMENTS)[0].strip()
    name, colon, _ = id.removeprefix("functions.").rpartition(":")
    return (name, id) if colon else (id.removeprefix("functions."), "")
