"""DeepSeek's calls. V3 and R1: a kind, the name, and the arguments as a block of code; V3.1: the name and the
arguments."""

from functools import partial

from msx_core.tool_calls.named_calls import NamedCalls, NamedForm
from msx_core.tool_calls.parts import CallNumbers, Schemas, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "deepseek_v3"
OPEN, CLOSE = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
BEGIN, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
BLOCK = "```"
TEMPLATE_MARKS: tuple[str, ...] = (OPEN,)
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    calls = partial(NamedCalls, NamedForm(_name_of, BEGIN, (BLOCK, END), CLOSE))
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: calls, BEGIN: calls})


def _name_of(head: str) -> tuple[str, str]:
    first, _, second = head.partition(SEPARATOR)
    name = second.partition(BLOCK)[0].strip()
    return name or first.strip(), ""
