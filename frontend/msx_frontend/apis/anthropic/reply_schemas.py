"""Schemas of the replies of Anthropic's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: https://docs.anthropic.com/en/api/messages
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"]


class MessageUsage(Struct):
    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int


class ContentBlock(Struct):
    type: Literal["text", "thinking", "tool_use"]
    text: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    signature: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    input: dict[str, Any] | UnsetType = UNSET


class AnthropicMessage(Struct):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[ContentBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageEvent(Struct):
    """`delta` grows a block, or says how the message ended."""

    type: Literal[
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    message: AnthropicMessage | UnsetType = UNSET
    index: int | UnsetType = UNSET
    content_block: ContentBlock | UnsetType = UNSET
    delta: dict[str, Any] | UnsetType = UNSET
    usage: MessageUsage | UnsetType = UNSET


class InputTokens(Struct):
    input_tokens: int
