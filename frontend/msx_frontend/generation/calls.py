"""The way from a text as it grows to what a chat client sees of it: reasoning, content, and calls of tools."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msx_core.generation import Capabilities, MessageDelta, ParseOptions
from msx_core.reasoning import FORMATS as REASONING
from msx_core.tool_calls import DEFAULT, WHOLE, ToolCallFormat
from msx_core.tool_calls import FORMATS as TOOL_CALLS
from msx_core.tool_calls.json_call import decoded
from msx_core.tool_calls.json_calls import JsonCalls
from msx_core.tool_calls.parts import CallNumbers, Part, Reasoning, ToolCall, ToolCallReader, call_id
from msx_frontend.generation.tools import Tools


def reader_of(
    tools: Tools, offered: Capabilities, values: Mapping[str, Any] | None = None, *, reasoning: bool | None = None
) -> ToolCallReader:
    """Calls that must be made are read from the JSON that the text is held to: nothing else can come before them.

    `values`: what the request gives the chat template. `reasoning`: False leaves out what the model thought. What the
    handler parses comes to the reader as content alone.
    """
    if tools.mode == "named":
        return NamedCall(tools.named)
    if tools.mode == "required":
        return RequiredCalls(tools)
    answer: ToolCallReader = Content()
    if offered.parses_calls:
        reads_all = False
    elif reads_all := offered.tool_parser in WHOLE:
        answer = format_of(offered).reader(tools.schemas if tools.mode == "auto" else {}, parallel=tools.parallel)
    elif tools.mode == "auto":
        answer = format_of(offered).reader(tools.schemas, parallel=tools.parallel)
    form = REASONING.get(offered.reasoning_parser)
    told = answer if reads_all or form is None or offered.parses_reasoning else form.reader(answer, values)
    return Unreasoned(told) if reasoning is False else told


def format_of(offered: Capabilities) -> ToolCallFormat:
    """The format in which the model writes calls that it chooses to make."""
    return TOOL_CALLS.get(offered.tool_parser, DEFAULT)


def keeps_special(tools: Tools, offered: Capabilities) -> bool:
    """Whether the text must keep special tokens for its reader."""
    form = REASONING.get(offered.reasoning_parser)
    if form is not None and form.special and not offered.parses_reasoning and tools.mode in ("auto", "none"):
        return True
    read = offered.tool_parser in WHOLE or tools.mode == "auto"
    return read and not offered.parses_calls and format_of(offered).NEEDS_SPECIAL_TOKENS


def parse_options(tools: Tools, offered: Capabilities, *, reasoning: bool | None = None) -> ParseOptions | None:
    """None where the handler has nothing to parse. `reasoning`: as of `reader_of`."""
    if tools.mode not in ("auto", "none"):
        return None
    if not (offered.parses_reasoning or (offered.parses_calls and tools.mode == "auto")):
        return None
    return ParseOptions(reasoning=reasoning is not False, parallel=tools.parallel)


def parts_of(reader: ToolCallReader, text: str, message: MessageDelta | None) -> Iterable[Part]:
    """The parts of a text's growth, of which the handler has made `message` where it parses by itself."""
    return reader.feed(text) if message is None else _parsed(reader, message)


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a whole call; {} for those that a limit cut short, and for what is no object."""
    found = decoded(call.arguments)
    return found if isinstance(found, dict) else {}


def _parsed(reader: ToolCallReader, message: MessageDelta) -> Iterator[Part]:
    if message.reasoning:
        yield Reasoning(message.reasoning)
    if message.content:
        yield from reader.feed(message.content)
    for call in message.calls:
        yield ToolCall(call.number, call.arguments, call.id, call.name)


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
