"""The message that a model has written, divided into reasoning, content and calls of tools."""

from collections.abc import Iterable
from typing import NamedTuple

from msx_core.generation import MessageDelta
from msx_core.tool_calls.parts import Reasoning, ToolCall, ToolCallReader
from msx_frontend.generation.calls import parts_of
from msx_frontend.generation.generation import Text


class Message(NamedTuple):
    """A complete text, divided into reasoning, content and calls."""

    content: str
    calls: list[ToolCall]
    reasoning: str


def message_of(text: Text, reader: ToolCallReader) -> Message:
    grown: list[MessageDelta | None] = [*text.messages] or [None]
    parts = [part for message in grown for part in parts_of(reader, text.text, message)]
    parts += reader.finish()
    content = "".join(part for part in parts if isinstance(part, str))
    reasoning = "".join(part.text for part in parts if isinstance(part, Reasoning))
    return Message(content, _joined(part for part in parts if isinstance(part, ToolCall)), reasoning)


def _joined(calls: Iterable[ToolCall]) -> list[ToolCall]:
    whole: dict[int, ToolCall] = {}
    for call in calls:
        begun = whole.get(call.number)
        whole[call.number] = call if begun is None else begun._replace(arguments=begun.arguments + call.arguments)
    return list(whole.values())
