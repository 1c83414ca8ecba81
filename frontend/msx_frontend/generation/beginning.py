"""Beginning of a prompt, without a tokenizer: as it was sent, or as the words of its messages."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from msx_core.generation import GenerateRequest, Image
from msx_frontend.job import Beginning


def beginning_of(message: msgspec.Struct) -> Beginning:
    """A further turn of the same conversation begins with all that this one has."""
    if not isinstance(message, GenerateRequest):
        return Beginning("", "")
    if message.messages is None:
        prompt = message.prompt or ""
        if message.images and isinstance(prompt, str):
            prompt = _seen(prompt, message.images)
        return Beginning(message.adapter, prompt)
    tools = repr(message.tools) if message.tools else ""  # templates write them before the conversation
    return Beginning(f"{message.adapter}\0{tools}", "\0".join(_words(message.messages)))


def _seen(prompt: str, images: Sequence[Image]) -> str:
    """The prompt with images' digests in their places; those of messages stand in their parts."""
    pieces, begin = [], 0
    for image in images:
        pieces += [prompt[begin : image.at], image.digest]
        begin = image.at or 0
    return "\0".join([*pieces, prompt[begin:]])


def _words(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        for name, value in message.items():
            yield name
            yield value if isinstance(value, str) else repr(value)
