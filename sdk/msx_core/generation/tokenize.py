"""A request for the tokens of a text."""

from typing import Any

from msx_core.generation.image import Image
from msx_core.generation.wire import Tokens, WireStruct


class TokenizeRequest(WireStruct):
    """As in `GenerateRequest`; the reply is a `TokenizeReply`."""

    prompt: str | None = None
    ids: Tokens | None = None
    """Instead of a text: the reply has the text of these tokens, special ones too, and no spans."""
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] = {}
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False
    chat_template: str | None = None
    images: tuple[Image, ...] = ()
    add_special_tokens: bool = True
    """Add them to a prompt; the template writes those of messages."""
    skip_special_tokens: bool = False
    """Leave them out of the text of `ids`."""


class TextSpan(WireStruct):
    """A token and the characters of the text that it covers."""

    id: int
    text: str
    start: int
    stop: int


class TokenizeReply(WireStruct):
    tokens: list[TextSpan]
    text: str
    """The text that was tokenized; for messages, the output of the chat template."""
    special: dict[int, str] = {}
    """The texts of those special tokens that are among `tokens`, by their ids."""
