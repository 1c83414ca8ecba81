"""`<tool_call>{"name": …, "arguments": …}</tool_call>` anywhere in the text, as Hermes' and Qwen's templates ask for,
or a text that is nothing but such objects, as Llama's and many others' do."""

from functools import partial

from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "hermes"
TEMPLATE_MARKS: tuple[str, ...] = ("<tool_call>",)
OPEN, CLOSE = "<tool_call>", "</tool_call>"
NEEDS_SPECIAL_TOKENS = False


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    numbers = CallNumbers(schemas, parallel=parallel, new_id=call_id)
    return TextWithCalls(numbers, {OPEN: partial(JsonCalls, closing=CLOSE)}, bare="{[", whole=JsonCalls)
