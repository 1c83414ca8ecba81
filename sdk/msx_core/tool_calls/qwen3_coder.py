"""Qwen3-Coder's calls: `<tool_call><function=name><parameter=key>value</parameter></function></tool_call>`."""

from functools import partial

from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.tagged_call import CallTag, CallTags, TaggedCall
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "qwen3_coder"
OPEN, FUNCTION = "<tool_call>", "<function="
TEMPLATE_MARKS: tuple[str, ...] = (FUNCTION,)
TAGS = CallTags(
    CallTag.of(FUNCTION, ">"),
    CallTag.of("<parameter=", ">"),
    "</parameter>",
    function_end="</function>",
    close="</tool_call>",
)
NEEDS_SPECIAL_TOKENS = False


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    call = partial(TaggedCall, TAGS)
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: call, FUNCTION: call})
