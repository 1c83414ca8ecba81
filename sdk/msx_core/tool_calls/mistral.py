"""Mistral's calls: `[TOOL_CALLS][{"name": …, "arguments": …}]`; newer models write `[TOOL_CALLS]name{…}` for each
call."""

from collections.abc import Generator, Iterator

from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.members import ObjectReader
from msx_core.tool_calls.parts import (
    CallNumbers,
    CallReader,
    Part,
    Schemas,
    ToolCall,
    ToolCallReader,
    short_call_id,
)
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "mistral"
TEMPLATE_MARKS: tuple[str, ...] = ("[TOOL_CALLS]",)
OPEN, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""
MOST = 400
"""The most characters before the arguments: a name and an id."""


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
            make = JsonCalls if begun[0] in "[{" else _NamedCall
            self._form, text = make(self._numbers, self._opened), begun
        yield from self._form.feed(text)

    def finish(self) -> Iterator[Part]:
        if self._form is None:
            yield self._opened
        else:
            yield from self._form.finish()


class _NamedCall:
    """A name, and its arguments as an object."""

    def __init__(self, numbers: CallNumbers, opened: str) -> None:
        self.rest: str | None = None
        self._numbers, self._raw, self._head = numbers, opened, ""
        self._arguments: ObjectReader | None = None
        self._begun: ToolCall | None = None

    def feed(self, text: str) -> Iterator[Part]:
        if self._arguments is None:
            text = yield from self._read_head(text)
        if self._arguments is None:
            return
        _, taken = self._arguments.feed(text)
        if taken and self._begun is not None:
            yield self._begun._replace(arguments=text[:taken])
            self._begun = ToolCall(self._begun.number, "")
        if self._arguments.over or self._arguments.broken:
            self.rest = text[taken:]

    def finish(self) -> Iterator[Part]:
        if self._arguments is None:
            yield self._raw + self._head

    def _read_head(self, text: str) -> Generator[Part, None, str]:
        """-> The text from the arguments on."""
        self._head += text
        head, brace, arguments = self._head.partition("{")
        if not brace:
            if len(head) > MOST:
                yield from self._not_a_call()
            return ""
        name = head.partition(ID)[0].partition(ARGUMENTS)[0].strip()
        if name not in self._numbers.schemas:
            yield from self._not_a_call()
            return ""
        self._arguments, self._begun = ObjectReader(), self._numbers.begin(name)
        return brace + arguments

    def _not_a_call(self) -> Iterator[Part]:
        yield self._raw
        self.rest = self._head
