"""GLM 4.5's and 4.6's calls: `<tool_call>name`, and pairs `<arg_key>key</arg_key><arg_value>value</arg_value>`."""

import re
from functools import partial

from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.tagged_call import CallTag, CallTags, TaggedCall
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "glm45"
OPEN, KEY = "<tool_call>", "<arg_key>"
TEMPLATE_MARKS: tuple[str, ...] = (KEY,)
TAGS = CallTags(
    CallTag("", re.compile(r"(?P<name>[^<]+)(?=<)")),
    CallTag(KEY, re.compile(KEY + r"(?P<name>[^<]*)</arg_key>\s*<arg_value>")),
    "</arg_value>",
    function_end="</tool_call>",
)
NEEDS_SPECIAL_TOKENS = True
"""The marks of calls are special tokens in some files."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    call = partial(TaggedCall, TAGS)
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: call})
