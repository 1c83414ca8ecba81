"""Seed-OSS's calls: those of Qwen3-Coder between marks of their own."""

from functools import partial

from msx_core.tool_calls import qwen3_coder
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.tagged_call import TaggedCall
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "seed_oss"
OPEN = "<seed:tool_call>"
TEMPLATE_MARKS: tuple[str, ...] = (OPEN,)
TAGS = qwen3_coder.TAGS._replace(close="</seed:tool_call>")
NEEDS_SPECIAL_TOKENS = True
"""The marks of calls are special tokens in some files."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    openers = dict.fromkeys((OPEN, TAGS.function.opening), partial(TaggedCall, TAGS))
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), openers)
