"""Llama's calls in Python syntax: a text that consists of `[name(key=value, …), …]` alone."""

import ast
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from msx_core.tool_calls.parts import CallNumbers, Part, Schemas, ToolCall, ToolCallReader, call_id
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "pythonic"
TEMPLATE_MARKS: tuple[str, ...] = ("<|python_start|>", "[func_name1(")
OPEN, CLOSE = "<|python_start|>", "<|python_end|>"
NEEDS_SPECIAL_TOKENS = True
BEGIN = re.compile(r"[\s,\[]*(?P<name>[A-Za-z_][\w.-]*)\s*\(")
BEGINNING = re.compile(r"[\s,\[]*([A-Za-z_][\w.-]*\s*)?")
KEY = re.compile(r"[\s,]*(?P<key>[A-Za-z_]\w*)\s*=")
OPENING, CLOSING = "([{", ")]}"
JSON_WORDS = {"true": True, "false": False, "null": None}


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    numbers = CallNumbers(schemas, parallel=parallel, new_id=call_id)
    return TextWithCalls(numbers, {OPEN: partial(_Calls, closing=CLOSE)}, bare="[", whole=_Calls)


class _Calls:
    """Reports an argument when it is complete."""

    def __init__(self, numbers: CallNumbers, opened: str, closing: str = "") -> None:
        self.rest: str | None = None
        self._numbers, self._raw, self._closing = numbers, opened, closing
        self._text = ""
        self._scanned = self._depth = 0
        self._quote = ""
        self._told = self._in_call = False
        self._begun: ToolCall | None = None
        self._members = 0

    def feed(self, text: str) -> Iterator[Part]:
        self._text += text
        while self.rest is None:
            before = len(self._text), self._in_call
            yield from self._argument() if self._in_call else self._between()
            if before == (len(self._text), self._in_call):
                return

    def finish(self) -> Iterator[Part]:
        if not self._told:
            yield self._raw + self._text

    def _between(self) -> Iterator[Part]:
        """Before a call, or after the last one."""
        text = self._text.lstrip()
        if self._told and text.startswith("]"):
            after = text[1:].lstrip()
            if not self._closing.startswith(after) or after == self._closing:  # else more of the mark may come
                yield from self._end(text[1:])
        elif found := BEGIN.match(self._text):
            yield from self._begin(found)
        elif not (whole := BEGINNING.fullmatch(self._text)) or (self._told and "[" in whole[0]):
            yield from self._end(self._text)

    def _begin(self, found: re.Match[str]) -> Iterator[Part]:
        if found["name"] not in self._numbers.schemas:
            yield from self._end(self._text)
            return
        self._told = self._in_call = True
        self._begun, self._members = self._numbers.begin(found["name"]), 0
        self._take(found.end())
        yield from self._tell("{")

    def _argument(self) -> Iterator[Part]:
        """Reads one complete argument, and the character that ends it."""
        place = self._end_of_argument()
        if place is None:
            return
        text, end = self._text[:place], self._text[place]
        self._take(place + 1)
        if key := KEY.match(text):
            comma = ", " if self._members else ""
            yield from self._tell(f"{comma}{json.dumps(key['key'])}: {_json(text[key.end() :].strip())}")
            self._members += 1
        if end == ")":
            self._in_call = False
            yield from self._tell("}")

    def _end_of_argument(self) -> int | None:
        """The position of the comma or parenthesis that ends the argument; text is not scanned twice."""
        while self._scanned < len(self._text):
            place, char = self._scanned, self._text[self._scanned]
            self._scanned += 1
            if self._quote:
                self._scanned += char == "\\"
                self._quote = "" if char == self._quote else self._quote
            elif char in "'\"":
                self._quote = char
            elif not self._depth and char in ",)":
                return place
            else:
                self._depth += (char in OPENING) - (char in CLOSING)
        return None

    def _end(self, rest: str) -> Iterator[Part]:
        """The end of the calls; all other text is content."""
        if not self._told:
            yield self._raw + rest[:1]
            rest = rest[1:]
        elif self._closing:
            rest = rest.lstrip().removeprefix(self._closing)
        self.rest = rest

    def _take(self, length: int) -> None:
        self._text = self._text[length:]
        self._scanned = self._depth = 0

    def _tell(self, text: str) -> Iterator[Part]:
        if self._begun is not None:
            yield self._begun._replace(arguments=text)
            self._begun = ToolCall(self._begun.number, "")


def _json(text: str) -> str:
    """A literal of Python or JSON as JSON; anything else becomes a text."""
    try:
        value: Any = JSON_WORDS[text] if text in JSON_WORDS else ast.literal_eval(text)
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return json.dumps(text, ensure_ascii=False)
