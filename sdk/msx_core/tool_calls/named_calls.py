"""Calls as a head that names the tool, and an object of arguments behind it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msx_core.tool_calls.members import ObjectReader
from msx_core.tool_calls.parts import CallNumbers, Part, ToolCall

MOST = 400
"""The most characters of a head."""


class NamedForm(NamedTuple):
    """`name_of`: from a head, which ends where the arguments begin, to the tool's name and the call's id, "" for a new
    one. Marks between calls: `begin` opens the next one, `skipped` say nothing, `close` ends all of them."""

    name_of: Callable[[str], tuple[str, str]]
    begin: str = ""
    skipped: tuple[str, ...] = ()
    close: str = ""

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(mark for mark in (self.begin, *self.skipped, self.close) if mark)


class NamedCalls:
    """Reports the arguments as the model writes them. `opened` is the text before: it ends with the mark of a call,
    or with another one, behind which `form.begin` must follow."""

    def __init__(self, form: NamedForm, numbers: CallNumbers, opened: str) -> None:
        self.rest: str | None = None
        self._form, self._numbers, self._raw, self._text = form, numbers, opened, ""
        """`_raw`: what is content unless it belongs to a call."""
        in_call = not form.begin or opened.endswith(form.begin)
        self._state: Callable[[], Iterator[Part]] = self._head if in_call else self._between
        self._told = self._moved = False
        self._arguments = ObjectReader()
        self._begun: ToolCall | None = None

    def feed(self, text: str) -> Iterator[Part]:
        self._text, self._moved = self._text + text, True
        while self._moved and self.rest is None:
            self._moved = False
            yield from self._state()

    def finish(self) -> Iterator[Part]:
        if self._raw:
            yield self._raw + self._text

    # -- the states: each takes what it knows off the beginning of the text, and moves on --

    def _head(self) -> Iterator[Part]:
        head, brace, arguments = self._text.partition("{")
        if not brace and len(head) <= MOST:
            return
        name, id = self._form.name_of(head)
        if not brace or len(head) > MOST or name not in self._numbers.schemas:
            yield from self._end()
            return
        begun = self._numbers.begin(name)
        self._begun = begun._replace(id=id) if begun is not None and id else begun
        self._told, self._raw, self._text = True, "", brace + arguments
        self._arguments = ObjectReader()
        self._move(self._in_arguments)

    def _in_arguments(self) -> Iterator[Part]:
        _, taken = self._arguments.feed(self._text)
        if taken and self._begun is not None:
            yield self._begun._replace(arguments=self._text[:taken])
            self._begun = ToolCall(self._begun.number, "")
        self._text = self._text[taken:]
        if self._arguments.over or self._arguments.broken:
            self._move(self._between)

    def _between(self) -> Iterator[Part]:
        body, form = self._text.lstrip(), self._form
        mark = next((mark for mark in form.marks if body.startswith(mark)), None)
        if mark is None:
            if not any(mark.startswith(body) for mark in form.marks):
                yield from self._end()
            return
        taken = len(self._text) - len(body) + len(mark)
        self._raw += self._text[:taken] if not self._told or mark == form.begin else ""
        self._text = self._text[taken:]
        if mark == form.close:
            yield from self._end()
        else:
            self._move(self._head if mark == form.begin else self._between)

    # -- what they share --

    def _end(self) -> Iterator[Part]:
        """No call follows: the text is for others, and so are marks without a call."""
        if self._raw:
            yield self._raw
        self.rest = self._text

    def _move(self, state: Callable[[], Iterator[Part]]) -> None:
        self._state, self._moved = state, True
