"""Phi 4 mini's calls: `<|tool_call|>[{"name": …, "arguments": …}]<|/tool_call|>`, or `functools[…]`."""

from functools import partial

from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "phi4_mini"
TEMPLATE_MARKS: tuple[str, ...] = ("<|tool|>",)
OPEN, CLOSE, BARE = "<|tool_call|>", "<|/tool_call|>", "functools["
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    numbers = CallNumbers(schemas, parallel=parallel, new_id=call_id)
    return TextWithCalls(numbers, {OPEN: partial(JsonCalls, closing=CLOSE), BARE: JsonCalls})
