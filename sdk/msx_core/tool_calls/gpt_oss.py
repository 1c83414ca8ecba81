"""gpt-oss's messages: `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`, and calls
as `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`
(https://cookbook.openai.com/articles/openai-harmony).

The channel `analysis` is reasoning. Content are `final`, and `commentary` to nobody, which tells the user what comes.
"""

import re
from collections.abc import Callable, Iterator

from msx_core.tool_calls.parts import (
    CallNumbers,
    Part,
    Reasoning,
    Schemas,
    ToolCall,
    ToolCallReader,
    call_id,
    known_prefix,
)

NAME = "gpt_oss"
CHANNEL, MESSAGE, START = "<|channel|>", "<|message|>", "<|start|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>", START)
TEMPLATE_MARKS: tuple[str, ...] = (CHANNEL,)
NEEDS_SPECIAL_TOKENS = True
"""The marks are special tokens."""
MOST = 400
"""The most characters of a message's head."""
_OPENINGS = (START, CHANNEL, "to=")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([^\s<]+)")

Said = Callable[[str], Part | None]
"""Function from a piece of a message to its part."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    return MessagesReader(CallNumbers(schemas, parallel=parallel, new_id=call_id))


class MessagesReader:
    """A text that does not begin with a head is content: one that is held to a form has no channels."""

    def __init__(self, numbers: CallNumbers) -> None:
        self._numbers, self._text = numbers, ""
        self._state: Callable[[], Iterator[Part]] = self._beginning
        self._moved = self._begun = False
        self._said: Said = _content

    def feed(self, text: str) -> Iterator[Part]:
        self._text, self._moved = self._text + text, True
        while self._moved:
            self._moved = False
            yield from self._state()

    def finish(self) -> Iterator[Part]:
        """A head that was cut short has said nothing, unless it is none."""
        if self._state in (self._beginning, self._body) or (self._state == self._head and not self._begun):
            yield from self._tell(self._text)

    # -- the states: each takes what it knows off the beginning of the text, and moves on --

    def _beginning(self) -> Iterator[Part]:
        text = self._text.lstrip()
        if text.startswith(_OPENINGS):
            self._move(self._head)
        elif not any(mark.startswith(text) for mark in _OPENINGS):
            self._move(self._body)
        yield from ()

    def _head(self) -> Iterator[Part]:
        head, message, rest = self._text.partition(MESSAGE)
        self._begun = self._begun or CHANNEL in head or START in head
        if message:
            self._text = rest
            yield from self._open(head)
            self._move(self._body)
        elif len(head) > MOST:
            self._said = _content
            self._move(self._body)

    def _body(self) -> Iterator[Part]:
        end, at = min(((mark, at) for mark in ENDS if (at := self._text.find(mark)) >= 0), key=_place, default=("", -1))
        sure = at if end else len(self._text) - known_prefix(self._text, ENDS)
        told, self._text = self._text[:sure], self._text[sure + len(end) :]
        yield from self._tell(told)
        if end:
            self._move(self._head if end == START else self._between)

    def _between(self) -> Iterator[Part]:
        """Read what stands behind the end of a message: what is not the next one's beginning says nothing."""
        _, start, rest = self._text.partition(START)
        if start:
            self._text = rest
            self._move(self._head)
        else:
            self._text = self._text[len(self._text) - known_prefix(self._text, (START,)) :]
        yield from ()

    # -- what they share --

    def _open(self, head: str) -> Iterator[Part]:
        channel, recipient = _CHANNEL.search(head), _RECIPIENT.search(head)
        if recipient is not None and recipient[1] in self._numbers.schemas:
            call = self._numbers.begin(recipient[1])
            self._said = _nothing if call is None else _arguments(call.number)
            if call is not None:
                yield call
        elif recipient is not None or (channel is not None and channel[1] == "analysis"):
            self._said = Reasoning  # to a tool that the client has not: it is not an answer
        else:
            self._said = _content

    def _tell(self, text: str) -> Iterator[Part]:
        if text and (part := self._said(text)) is not None:
            yield part

    def _move(self, state: Callable[[], Iterator[Part]]) -> None:
        self._state, self._moved = state, True


def _place(found: tuple[str, int]) -> int:
    return found[1]


def _content(text: str) -> Part:
    return text


def _nothing(text: str) -> None:
    """A call that is not reported."""


def _arguments(number: int) -> Said:
    return lambda text: ToolCall(number, text)
