"""Qwen3-Coder's calls: `<tool_call><function=name><parameter=key>value</parameter></function></tool_call>`."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from msx_core.tool_calls.json_call import decoded
from msx_core.tool_calls.parts import (
    CallNumbers,
    Part,
    Schemas,
    ToolCall,
    ToolCallReader,
    call_id,
    known_prefix,
)
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "qwen3_coder"
TEMPLATE_MARKS: tuple[str, ...] = ("<function=",)
OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
NEEDS_SPECIAL_TOKENS = False
MOST = 400
"""The most characters of a tag."""


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: _Call, FUNCTION: _Call})


class _Call:
    """Reports text values as they grow, other values when they are complete."""

    def __init__(self, numbers: CallNumbers, opened: str) -> None:
        self.rest: str | None = None
        self._numbers, self._raw = numbers, opened
        self._text = FUNCTION if opened.endswith(FUNCTION) else ""
        if self._text:
            self._raw = opened[: -len(FUNCTION)]
        self._state: Callable[[], Iterator[Part]] = self._function
        self._told = self._moved = False
        self._begun: ToolCall | None = None
        self._types: dict[str, Any] = {}
        self._members = 0
        self._key = self._value = ""

    def feed(self, text: str) -> Iterator[Part]:
        self._text += text
        self._moved = True
        while self._moved and self.rest is None:
            self._moved = False
            yield from self._state()

    def finish(self) -> Iterator[Part]:
        if not self._told:
            yield self._raw + self._text

    # -- the states: each takes what it knows off the beginning of the text, and moves on --

    def _function(self) -> Iterator[Part]:
        tag = self._tag(FUNCTION)
        if tag is None:
            return
        name = tag.strip()
        if name not in self._numbers.schemas:
            yield from self._not_a_call()
            return
        self._told, self._begun = True, self._numbers.begin(name)
        properties = self._numbers.schemas[name].get("properties")
        self._types = properties if isinstance(properties, dict) else {}
        yield from self._tell("{")
        self._move(self._parameters)

    def _parameters(self) -> Iterator[Part]:
        self._text = self._text.lstrip()
        if self._text.startswith(FUNCTION_END):
            self._text = self._text[len(FUNCTION_END) :]
            yield from self._tell("}")
            self._move(self._close)
        elif not FUNCTION_END.startswith(self._text) and (tag := self._tag(PARAMETER)) is not None:
            self._key = tag.strip()
            yield from self._tell(f"{', ' if self._members else ''}{json.dumps(self._key, ensure_ascii=False)}: ")
            self._members += 1
            self._move(self._first_line)

    def _first_line(self) -> Iterator[Part]:
        """The line feed before a value does not belong to it."""
        if self._text:
            self._text = self._text.removeprefix("\n")
            self._value = ""
            if self._is_text:
                yield from self._tell('"')
            self._move(self._in_value)

    def _in_value(self) -> Iterator[Part]:
        value, end, rest = self._text.partition(PARAMETER_END)
        if end:
            self._text = rest
            yield from self._end_value(value.removesuffix("\n"))
            self._move(self._parameters)
        elif self._is_text:
            marks = (PARAMETER_END, f"\n{PARAMETER_END}")
            sure = len(value) - known_prefix(value, marks)
            self._text = value[sure:]
            yield from self._tell(_quoted(value[:sure]))

    def _end_value(self, value: str) -> Iterator[Part]:
        if self._is_text:
            yield from self._tell(_quoted(value) + '"')
        else:
            plain = value.strip()
            lowered = plain.lower() if plain in ("True", "False", "None") else plain
            found = "null" if lowered == "none" else lowered
            known = found == "null" or decoded(found) is not None
            yield from self._tell(found if known else f'"{_quoted(value)}"')

    def _close(self) -> Iterator[Part]:
        """The end of the tool call, if the model writes it."""
        after = self._text.lstrip()
        if after.startswith(CLOSE):
            self.rest = after[len(CLOSE) :]
        elif after and not CLOSE.startswith(after):
            self.rest = after
        yield from ()

    # -- what they share --

    @property
    def _is_text(self) -> bool:
        kind = self._types.get(self._key)
        return isinstance(kind, dict) and kind.get("type") == "string"

    def _tag(self, opening: str) -> str | None:
        """The name in the tag at the beginning of the text; None if the tag is incomplete, or is another text."""
        text = self._text.lstrip()
        name, end, rest = text[len(opening) :].partition(">")
        if text.startswith(opening) and end and len(name) <= MOST:
            self._raw += self._text[: len(self._text) - len(rest)]
            self._text = rest
            return name
        if not (opening.startswith(text[: len(opening)]) and len(name) <= MOST) and text:
            self._give_up()
        return None

    def _give_up(self) -> None:
        """The text that follows cannot belong to a call."""
        self._move(self._not_a_call if not self._told else self._stop)

    def _not_a_call(self) -> Iterator[Part]:
        yield self._raw
        self.rest = self._text

    def _stop(self) -> Iterator[Part]:
        yield from self._tell("}")
        self.rest = self._text

    def _tell(self, text: str) -> Iterator[Part]:
        if self._begun is not None and text:
            yield self._begun._replace(arguments=text)
            self._begun = ToolCall(self._begun.number, "")

    def _move(self, state: Callable[[], Iterator[Part]]) -> None:
        self._state, self._moved = state, True


def _quoted(text: str) -> str:
    """The inside of a text of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
