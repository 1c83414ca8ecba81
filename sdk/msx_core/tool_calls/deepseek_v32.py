"""DeepSeek V3.2's calls: tags `<｜DSML｜invoke name="…">`, and `<｜DSML｜parameter name="…" string="true">` in them."""

import re
from functools import partial

from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.tagged_call import CallTag, CallTags, TaggedCall
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "deepseek_v32"
MARK = "｜DSML｜"
OPEN, FUNCTION, PARAMETER = f"<{MARK}function_calls>", f'<{MARK}invoke name="', f'<{MARK}parameter name="'
TEMPLATE_MARKS: tuple[str, ...] = (MARK,)
TAGS = CallTags(
    CallTag.of(FUNCTION, '">'),
    CallTag(PARAMETER, re.compile(PARAMETER + r'(?P<name>[^"]*)"\s+string="(?P<text>true|false)"\s*>')),
    f"</{MARK}parameter>",
    function_end=f"</{MARK}invoke>",
    close=f"</{MARK}function_calls>",
    around="",
)
NEEDS_SPECIAL_TOKENS = True


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    call = partial(TaggedCall, TAGS)
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: call, FUNCTION: call})
