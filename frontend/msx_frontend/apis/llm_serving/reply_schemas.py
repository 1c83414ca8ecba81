"""Schemas of llm-serving's replies, for /openapi.json. Replies are written without them."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from msx_core.generation import FinishReason
from msx_frontend.generation.tgi_tokens import TextToken


class WholeText(Struct, kw_only=True):
    generated_text: str
    finish_reason: FinishReason
    generated_tokens: int
    prefill: list[TextToken]
    seed: int
    tokens: list[TextToken]
    top_tokens: list[list[TextToken]]
    details: dict[str, Any] | None


class LineToken(Struct):
    text: str
    index: int


class StreamedToken(Struct, kw_only=True):
    """A token, or the whole text."""

    generated_text: str
    details: dict[str, Any] | None
    tokens: TextToken | list[TextToken]
    top_tokens: list[TextToken | list[TextToken]]
    token: LineToken | UnsetType = UNSET
    finish_reason: FinishReason | UnsetType = UNSET
    generated_tokens: int | UnsetType = UNSET
    prefill: list[TextToken] | UnsetType = UNSET
    seed: int | UnsetType = UNSET


class StreamedLine(Struct):
    event: Literal["message"]
    retry: int
    data: list[StreamedToken]


class Number(Struct):
    event: Literal["message"]
    retry: int
    data: int


class ServedModelInfo(Struct, kw_only=True):
    docker_label: str
    max_batch_total_tokens: int | None
    max_concurrent_requests: int | None
    max_input_length: int | None
    max_total_tokens: int | None
    model_device_type: str
    model_dtype: str | None
    model_id: str
    model_pipeline_tag: str
    version: str
