"""InternLM 2's and 3's calls: `<|action_start|><|plugin|>{"name": …, "parameters": …}<|action_end|>`."""

from functools import partial

from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "internlm"
OPEN, CLOSE = "<|action_start|><|plugin|>", "<|action_end|>"
TEMPLATE_MARKS: tuple[str, ...] = ("<|action_start|>",)
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    numbers = CallNumbers(schemas, parallel=parallel, new_id=call_id)
    return TextWithCalls(numbers, {OPEN: partial(JsonCalls, closing=CLOSE)})
