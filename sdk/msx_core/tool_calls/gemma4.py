"""Gemma 4's calls: `<|tool_call>call:name{key:<|"|>text<|"|>,other:[1,{…}]}<tool_call|>`, whose keys have no quotes."""

import json
import re
from collections.abc import Iterator

from msx_core.tool_calls.json_call import decoded
from msx_core.tool_calls.parts import CallNumbers, Part, Schemas, ToolCallReader, call_id, known_prefix
from msx_core.tool_calls.rewritten_call import RewrittenCall
from msx_core.tool_calls.text_with_calls import TextWithCalls

NAME = "gemma4"
OPEN, CLOSE, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
TEMPLATE_MARKS: tuple[str, ...] = (OPEN,)
NEEDS_SPECIAL_TOKENS = True
MOST, WAITS, DEEPEST = 300, 400, 64
"""Characters of a name or of a value without quotes, how many are waited for, and objects in each other, at most."""
BEGIN = "call:"
CALL = re.compile(rf"\s*{BEGIN}(?P<name>[^{{}}<]{{0,{WAITS - len(BEGIN)}}})\{{")
KEY = re.compile(
    rf'(?:<\|"\|>(?P<quoted>.{{0,{MOST}}}?)<\|"\|>|(?P<plain>[^:{{}}\[\],<]{{0,{MOST}}}))\s{{0,9}}:', re.DOTALL
)
PLAIN = re.compile(rf"(?P<value>[^,{{}}\[\]<]{{1,{MOST}}})(?=[,}}\]])")
BRACKETS = {"{": "}", "[": "]"}


def reader(schemas: Schemas, *, parallel: bool) -> ToolCallReader:
    return TextWithCalls(CallNumbers(schemas, parallel=parallel, new_id=call_id), {OPEN: GemmaCall})


class GemmaCall(RewrittenCall):
    """Writes the arguments of one call as JSON: texts as they grow, other values when they are complete."""

    def __init__(self, numbers: CallNumbers, opened: str) -> None:
        super().__init__(numbers, opened, "", self._name)
        self._open: list[str] = []
        self._first = True
        """The innermost object or list has nothing yet."""

    def _name(self) -> Iterator[Part]:
        if (found := CALL.match(self._text)) and (name := found["name"].strip()) in self._numbers.schemas:
            self._told, self._begun = True, self._numbers.begin(name)
            self._text = self._text[found.end() :]
            yield from self._enter("{")
        elif found or not _begins_call(self._text):
            yield self._raw
            self.rest = self._text

    def _member(self) -> Iterator[Part]:
        """Before a key, or before a value of a list."""
        self._text = self._text.lstrip(", \t\r\n")
        if self._text.startswith(tuple(BRACKETS.values())):
            self._text = self._text[1:]
            yield from self._leave()
        elif self._open[-1] == "[":
            if self._text:
                self._move(self._value)
        elif found := KEY.match(self._text):
            key = found["quoted"] if found["plain"] is None else found["plain"].strip()
            self._text = self._text[found.end() :]
            yield from self._tell(f"{self._comma()}{json.dumps(key, ensure_ascii=False)}: ")
            self._first = True  # no comma before the value
            self._move(self._value)
        elif len(self._text) > WAITS:
            yield from self._stop()

    def _value(self) -> Iterator[Part]:
        self._text = self._text.lstrip()
        if self._text.startswith(QUOTE):
            self._text = self._text[len(QUOTE) :]
            yield from self._tell(f'{self._comma()}"')
            self._move(self._in_text)
        elif self._text[:1] in BRACKETS and len(self._open) < DEEPEST:
            opening, self._text = self._text[0], self._text[1:]
            yield from self._enter(self._comma() + opening)
        elif found := PLAIN.match(self._text):
            self._text = self._text[found.end() :]
            yield from self._tell(self._comma() + _plain(found["value"].strip()))
            self._move(self._member)
        elif len(self._text) > WAITS or (self._text and not _begins_value(self._text)):
            yield from self._tell("null" if self._open[-1] == "{" else "")
            yield from self._stop()

    def _in_text(self) -> Iterator[Part]:
        value, end, rest = self._text.partition(QUOTE)
        if not end:
            sure = len(value) - known_prefix(value, (QUOTE,))
            value, rest = value[:sure], value[sure:]
        self._text = rest
        yield from self._tell(json.dumps(value, ensure_ascii=False)[1:-1] + ('"' if end else ""))
        if end:
            self._move(self._member)

    def _close(self) -> Iterator[Part]:
        """The mark behind the call, if the model writes it."""
        after = self._text.lstrip()
        if after.startswith(CLOSE) or not CLOSE.startswith(after):
            self.rest = after.removeprefix(CLOSE)
        yield from ()

    # -- what they share --

    def _enter(self, text: str) -> Iterator[Part]:
        self._open.append(text[-1])
        self._first = True
        self._move(self._member)
        yield from self._tell(text)

    def _leave(self) -> Iterator[Part]:
        self._first = False
        yield from self._tell(BRACKETS[self._open.pop()])
        self._move(self._member if self._open else self._close)

    def _comma(self) -> str:
        comma, self._first = "" if self._first else ", ", False
        return comma

    def _stop(self) -> Iterator[Part]:
        """End the call: no more of the text can belong to it."""
        yield from self._tell("".join(BRACKETS[opening] for opening in reversed(self._open)))
        self.rest = self._text


def _begins_call(text: str) -> bool:
    begun = text.lstrip()
    if len(begun) > WAITS:
        return False
    return BEGIN.startswith(begun) or (begun.startswith(BEGIN) and not set("{}<") & set(begun))


def _begins_value(text: str) -> bool:
    return QUOTE.startswith(text[: len(QUOTE)]) or bool(re.fullmatch(r"[^,{}\[\]<]*", text))


def _plain(value: str) -> str:
    """A value without quotes as JSON; what is none there becomes a text."""
    found = "null" if value.lower() in ("null", "none", "nil") else value
    known = found == "null" or decoded(found) is not None
    return found if known else json.dumps(value, ensure_ascii=False)
