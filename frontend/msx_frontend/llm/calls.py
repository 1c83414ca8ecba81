"""From a text as it grows to what a chat client sees of it: content, and calls of tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import msgspec

from msx_frontend.ids import new_request_id
from msx_frontend.llm.tools import Tools

OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""How Hermes' and Qwen's templates ask for calls; Llama's ask for the bare object."""


class Call(NamedTuple):
    """A call, or more of its arguments: only the first of each has an id and a name."""

    number: int
    arguments: str
    id: str = ""
    name: str = ""


Part = str | Call


class Reader(Protocol):
    """`feed` the text as it grows, then `finish`; what they yield is content, whole characters of it, and calls."""

    def feed(self, text: str) -> Iterator[Part]: ...

    def finish(self) -> Iterator[Part]: ...


def reader_of(tools: Tools) -> Reader:
    if tools.mode == "named":
        return NamedCall(tools.named)
    if tools.mode == "required":
        return RequiredCalls()
    return AutoCalls(tools) if tools.mode == "auto" else Content()


class Content:
    """No tools: all is content."""

    def feed(self, text: str) -> Iterator[Part]:
        if text:
            yield text

    def finish(self) -> Iterator[Part]:
        return iter(())


class NamedCall:
    """The text is the arguments of one call."""

    def __init__(self, name: str) -> None:
        self._name, self._begun = name, False

    def feed(self, text: str) -> Iterator[Part]:
        if not self._begun:
            self._begun = True
            yield Call(0, text, new_call_id(), self._name)
        elif text:
            yield Call(0, text)

    def finish(self) -> Iterator[Part]:
        return iter(())


class RequiredCalls:
    """The text is a JSON list of calls, each of which is told when it is complete.

    One that was cut short before its first call was complete is content, so that its reader sees what there is.
    """

    def __init__(self) -> None:
        self._objects = Objects()
        self._text = ""
        self._count = 0

    def feed(self, text: str) -> Iterator[Part]:
        self._text += "" if self._count else text
        for found in self._objects.feed(text):
            value = _decoded(found)
            if isinstance(value, dict) and isinstance(value.get("name"), str):
                yield Call(self._count, _arguments(value), new_call_id(), value["name"])
                self._count += 1

    def finish(self) -> Iterator[Part]:
        if not self._count and self._text:
            yield self._text


class AutoCalls:
    """Content with calls in tags, or nothing but calls as bare JSON. What only looks like a call is content."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._held = ""
        self._count = 0
        self._spoken = False
        """Content has been told, so that a brace is a brace."""

    def feed(self, text: str) -> Iterator[Part]:
        self._held += text
        while self._held:
            start = self._held.find(OPEN)
            if start < 0:
                break
            end = self._held.find(CLOSE, start)
            if end < 0:
                yield from self._say(self._held[:start].rstrip())
                self._held = self._held[start:]
                return
            yield from self._say(self._held[:start].rstrip())
            tagged, self._held = self._held[start : end + len(CLOSE)], self._held[end + len(CLOSE) :]
            yield from self._call(tagged[len(OPEN) : -len(CLOSE)], tagged)
        if not self._may_be_bare():
            safe = len(self._held) - _unsure(self._held)
            said, self._held = self._held[:safe], self._held[safe:]
            yield from self._say(said)

    def finish(self) -> Iterator[Part]:
        held, self._held = self._held, ""
        if held.startswith(OPEN):
            yield from self._call(held[len(OPEN) :], held)
        elif not self._spoken and (calls := self._bare(held)):
            yield from calls
        elif held.strip() or not self._count:
            yield from self._say(held)

    def _may_be_bare(self) -> bool:
        return not self._spoken and not self._count and self._held.lstrip()[:1] in ("{", "[")

    def _bare(self, text: str) -> list[Call]:
        """All of the text is calls, or none of it is."""
        objects = Objects()
        values = [_decoded(found) for found in objects.feed(text)]
        rest = text
        for found in objects.found:
            rest = rest.replace(found, "", 1)
        if rest.strip(" \n\t[],;") or not all(self._known(value) for value in values):
            return []
        return [self._new(value) for value in values[: None if self._tools.parallel else 1]]

    def _call(self, text: str, tagged: str) -> Iterator[Part]:
        value = _decoded(text)
        if not self._known(value):
            yield from self._say(tagged)
        elif self._tools.parallel or not self._count:
            yield self._new(value)

    def _known(self, value: Any) -> bool:
        return isinstance(value, dict) and str(value.get("name")) in self._tools.schemas

    def _new(self, value: dict[str, Any]) -> Call:
        self._count += 1
        return Call(self._count - 1, _arguments(value), new_call_id(), value["name"])

    def _say(self, text: str) -> Iterator[Part]:
        if text:
            self._spoken = self._spoken or bool(text.strip())
            yield text


class Objects:
    """Finds whole JSON objects in a text that grows; what stands between them is passed over."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._text = ""
        self._depth = 0
        self._quoted = self._escaped = False

    def feed(self, text: str) -> list[str]:
        new = [found for char in text if (found := self._next(char))]
        self.found += new
        return new

    def _next(self, char: str) -> str:
        if self._depth or char == "{":
            self._text += char
        if self._quoted:
            self._in_quotes(char)
        elif char == '"' and self._depth:
            self._quoted = True
        elif char == "{":
            self._depth += 1
        elif char == "}" and self._depth:
            self._depth -= 1
            if not self._depth:
                whole, self._text = self._text, ""
                return whole
        return ""

    def _in_quotes(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._quoted = False


def new_call_id() -> str:
    return f"call_{new_request_id().replace('-', '')[:24]}"


def _unsure(text: str) -> int:
    """Characters at the end that wait for more: white space before a call, and the beginning of its tag."""
    tag = next((size for size in range(len(OPEN) - 1, 0, -1) if text.endswith(OPEN[:size])), 0)
    return len(text) - len(text[: len(text) - tag].rstrip())


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _arguments(value: dict[str, Any]) -> str:
    """As a text of JSON. Models were taught either word."""
    arguments = value.get("arguments", value.get("parameters", {}))
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
