"""Mistral's calls: `[TOOL_CALLS][{"name": …, "arguments": …}]`; newer models write `[TOOL_CALLS]name{…}` for each
call."""

from collections.abc import Iterator
from functools import partial

from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.named_calls import NamedCalls, NamedForm
from msx_core.tool_calls.parts import CallNumbers, CallReader, Part, Schemas, ToolCallReader, short_call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "mistral"
TEMPLATE_MARKS: tuple[str, ...] = ("[TOOL_CALLS]",)
OPEN, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=short_call_id), {OPEN: _Form})


class _Form:
    """Reads either of the two forms."""

    def __init__(self, numbers: CallNumbers, opened: str) -> None:
        self._numbers, self._opened = numbers, opened
        self._form: CallReader | None = None

    @property
    def rest(self) -> str | None:
        return None if self._form is None else self._form.rest

    def feed(self, text: str) -> Iterator[Part]:
        if self._form is None:
            begun = text.lstrip()
            self._opened += text[: len(text) - len(begun)]
            if not begun:
                return
            make = JsonCalls if begun[0] in "[{" else partial(NamedCalls, NAMED)
            self._form, text = make(self._numbers, self._opened), begun
        yield from self._form.feed(text)

    def finish(self) -> Iterator[Part]:
        if self._form is None:
            yield self._opened
        else:
            yield from self._form.finish()


def _name_of(head: str) -> tuple[str, str]:
    return head.partition(ID)[0].partition(ARGUMENTS)[0].strip(), ""


NAMED = NamedForm(_name_of)
