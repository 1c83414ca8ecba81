"""MiniMax M2's calls: `<minimax:tool_call><invoke name="…"><parameter name="…">value</parameter></invoke>…`."""

from functools import partial

from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.tagged_call import CallTag, CallTags, TaggedCall
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "minimax_m2"
OPEN, FUNCTION = "<minimax:tool_call>", '<invoke name="'
TEMPLATE_MARKS: tuple[str, ...] = (OPEN,)
TAGS = CallTags(
    CallTag.of(FUNCTION, '">'),
    CallTag.of('<parameter name="', '">'),
    "</parameter>",
    function_end="</invoke>",
    close="</minimax:tool_call>",
)
NEEDS_SPECIAL_TOKENS = True
"""The marks of calls are special tokens in some files."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    call = partial(TaggedCall, TAGS)
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: call, FUNCTION: call})
