"""Beginning of a prompt, without a tokenizer: as it was sent, or as the words of its messages."""

from collections.abc import Iterator
from typing import Any

import msgspec

from msx_core.generation import GenerateRequest
from msx_frontend.job import Beginning


def beginning_of(message: msgspec.Struct) -> Beginning:
    """A further turn of the same conversation begins with all that this one has."""
    if not isinstance(message, GenerateRequest):
        return Beginning("", "")
    if message.messages is None:
        return Beginning(message.adapter, message.prompt or "")
    tools = repr(message.tools) if message.tools else ""  # templates write them before the conversation
    return Beginning(f"{message.adapter}\0{tools}", "\0".join(_words(message.messages)))


def _words(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        for name, value in message.items():
            yield name
            yield value if isinstance(value, str) else repr(value)
