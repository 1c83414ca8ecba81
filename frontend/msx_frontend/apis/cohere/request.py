"""Requests of Cohere's API. Shapes: https://docs.cohere.com/reference/about"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from msx_core.generation.wire import MOST_INTEGER, Integer, Positive, Tokens

IGNORED = ("citation_options", "safety_mode", "raw_prompting")
"""Members of a chat that have no effect."""


class CohereThinking(msgspec.Struct):
    type: Literal["enabled", "disabled"] = "enabled"
    token_budget: int | None = None


class CohereFormat(msgspec.Struct):
    type: Literal["text", "json_object"] = "text"
    json_schema: dict[str, Any] | None = None
    schema: dict[str, Any] | None = None
    """Older name of `json_schema`."""


class CohereChat(msgspec.Struct, kw_only=True):
    messages: list[dict[str, Any]]
    model: str | None = None
    stream: bool = False
    tools: list[dict[str, Any]] | None = None
    strict_tools: bool | None = None
    tool_choice: Literal["REQUIRED", "NONE"] | None = None
    documents: list[str | dict[str, Any]] | None = None
    citation_options: Any = None
    response_format: CohereFormat | None = None
    safety_mode: Any = None
    raw_prompting: Any = None
    max_tokens: Positive | None = None
    stop_sequences: list[str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    seed: int | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    k: Annotated[int, Meta(ge=0, le=MOST_INTEGER)] | None = None
    p: Annotated[float, Meta(gt=0, le=1)] | None = None
    logprobs: bool | None = None
    thinking: CohereThinking | None = None
    priority: Integer | None = None

    @property
    def thinks(self) -> bool | None:
        """Whether the model is to think; None: as it does by itself."""
        return None if self.thinking is None else self.thinking.type == "enabled"

    def without_effect(self) -> list[str]:
        """The places of members that have no effect."""
        places = [name for name in IGNORED if getattr(self, name) is not None]
        budget = self.thinking is not None and self.thinking.token_budget is not None
        return [*places, *(["thinking.token_budget"] if budget else [])]


class CohereInput(msgspec.Struct):
    content: list[dict[str, Any]]


class CohereEmbed(msgspec.Struct, kw_only=True):
    """One of `texts`, `inputs` and `images` is given."""

    model: str | None = None
    texts: list[str] | None = None
    images: Any = None
    inputs: list[CohereInput] | None = None
    input_type: str | None = None
    embedding_types: list[str] | None = None
    output_dimension: Positive | None = None
    max_tokens: Positive | None = None
    truncate: Literal["NONE", "START", "END"] = "END"
    priority: Any = None


class CohereTokenize(msgspec.Struct, kw_only=True):
    text: str
    model: str | None = None


class CohereDetokenize(msgspec.Struct, kw_only=True):
    tokens: Tokens
    model: str | None = None
