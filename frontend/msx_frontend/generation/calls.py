"""The way from a text as it grows to what a chat client sees of it: reasoning, content, and calls of tools."""

from collections.abc import Iterator

from msx_core.generation import Capabilities
from msx_core.reasoning import FORMATS as REASONING
from msx_core.reasoning import ReasoningFirst
from msx_core.tool_calls import DEFAULT, WHOLE, ToolCallFormat
from msx_core.tool_calls import FORMATS as TOOL_CALLS
from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.parts import CallNumbers, Part, Reasoning, ToolCall, ToolCallReader, call_id
from msx_frontend.generation.tools import Tools


def reader_of(tools: Tools, offered: Capabilities, *, reasoning: bool | None = None) -> ToolCallReader:
    """Calls that must be made are read from the JSON that the text is held to: nothing else can come before them.

    `reasoning`: False leaves out what the model thought.
    """
    if tools.mode == "named":
        return NamedCall(tools.named)
    if tools.mode == "required":
        return RequiredCalls(tools)
    answer: ToolCallReader = Content()
    if reads_all := offered.tool_parser in WHOLE:
        answer = format_of(offered).reader(tools.schemas if tools.mode == "auto" else {}, parallel=tools.parallel)
    elif tools.mode == "auto":
        answer = format_of(offered).reader(tools.schemas, parallel=tools.parallel)
    inside = REASONING.get(offered.reasoning_parser)
    if reads_all or inside is None:
        told = answer
    else:
        told = ReasoningFirst(answer, inside=inside)
    return Unreasoned(told) if reasoning is False else told


def format_of(offered: Capabilities) -> ToolCallFormat:
    """The format in which the model writes calls that it chooses to make."""
    return TOOL_CALLS.get(offered.tool_parser, DEFAULT)


def keeps_special(tools: Tools, offered: Capabilities) -> bool:
    """Whether the text must keep special tokens for its reader."""
    read = offered.tool_parser in WHOLE or tools.mode == "auto"
    return read and format_of(offered).NEEDS_SPECIAL_TOKENS


class Content:
    """Reader for requests without tools: all text is content."""

    def feed(self, text: str) -> Iterator[Part]:
        if text:
            yield text

    def finish(self) -> Iterator[Part]:
        return iter(())


class Unreasoned:
    """Drops reasoning from the parts of another reader."""

    def __init__(self, reader: ToolCallReader) -> None:
        self._reader = reader

    def feed(self, text: str) -> Iterator[Part]:
        return (part for part in self._reader.feed(text) if not isinstance(part, Reasoning))

    def finish(self) -> Iterator[Part]:
        return (part for part in self._reader.finish() if not isinstance(part, Reasoning))


class NamedCall:
    """The text is the arguments of one call."""

    def __init__(self, name: str) -> None:
        self._name, self._begun = name, False

    def feed(self, text: str) -> Iterator[Part]:
        if not self._begun:
            self._begun = True
            yield ToolCall(0, text, call_id(), self._name)
        elif text:
            yield ToolCall(0, text)

    def finish(self) -> Iterator[Part]:
        return iter(())


class RequiredCalls:
    """The text is a JSON list of calls. A call that was cut short before its name was known is dropped."""

    def __init__(self, tools: Tools) -> None:
        numbers = CallNumbers(tools.schemas, parallel=tools.parallel, new_id=call_id)
        self._calls = JsonCalls(numbers, eager=True)

    def feed(self, text: str) -> Iterator[Part]:
        return (part for part in self._calls.feed(text) if isinstance(part, ToolCall))

    def finish(self) -> Iterator[Part]:
        return iter(())
