"""Requests of Anthropic's Messages API. Shapes: https://docs.anthropic.com/en/api/messages"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from msx_core.generation.wire import MOST_INTEGER, Positive


class Thinking(msgspec.Struct):
    type: Literal["enabled", "adaptive", "disabled"]
    budget_tokens: Positive | None = None


class OutputConfig(msgspec.Struct):
    format: dict[str, Any] | None = None
    effort: str | None = None


class ConversationRequest(msgspec.Struct, kw_only=True):
    """The members that the prompt is made of; the whole request of `/v1/messages/count_tokens`."""

    model: str
    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    cache_control: Any = None
    container: Any = None
    context_management: Any = None
    inference_geo: Any = None
    mcp_servers: Any = None
    metadata: Any = None
    service_tier: Any = None
    speed: Any = None

    @property
    def thinks(self) -> bool:
        return self.thinking is not None and self.thinking.type != "disabled"


class MessagesRequest(ConversationRequest, kw_only=True):
    max_tokens: Positive
    output_format: dict[str, Any] | None = None
    """An older place of `output_config.format`."""
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """Anthropic's ends at 1; clients that speak to other models, too, send up to 2."""
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=MOST_INTEGER)] | None = None


WITHOUT_EFFECT = (
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "service_tier",
    "speed",
)
"""Members that are for a service in the cloud. The keys and values of prompts that begin alike are kept anyway."""


def without_effect(asked: ConversationRequest) -> list[str]:
    """The places of members that have no effect."""
    told = [name for name in WITHOUT_EFFECT if getattr(asked, name) is not None]
    if asked.thinking is not None and asked.thinking.budget_tokens is not None:
        told.append("thinking.budget_tokens")
    return told
