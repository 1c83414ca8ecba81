"""Granite 3's calls: `<|tool_call|>[{"name": …, "arguments": …}]`, or the list alone; no mark ends them."""

from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "granite"
OPEN = "<|tool_call|>"
TEMPLATE_MARKS: tuple[str, ...] = (OPEN,)
NEEDS_SPECIAL_TOKENS = True
"""The mark is a special token."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    numbers = CallNumbers(schemas, parallel=parallel, new_id=call_id)
    return TextWithCalls(numbers, {OPEN: JsonCalls, "<tool_call>": JsonCalls}, bare="[", whole=JsonCalls)
