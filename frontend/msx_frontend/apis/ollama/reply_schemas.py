"""Schemas of the replies of Ollama's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: https://docs.ollama.com/api
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class OllamaMessage(Struct):
    role: Literal["assistant"]
    content: str
    thinking: str | UnsetType = UNSET
    tool_calls: list[dict[str, Any]] | UnsetType = UNSET


class OllamaLine(Struct, kw_only=True):
    """Durations are nanoseconds; they, the counts and `done_reason` are those of the last line."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET


class ChatLine(OllamaLine, kw_only=True):
    message: OllamaMessage


class GenerateLine(OllamaLine, kw_only=True):
    response: str
    thinking: str | UnsetType = UNSET


class Embedded(Struct):
    model: str
    embeddings: list[list[float]]
    prompt_eval_count: int


class EmbeddedOne(Struct):
    embedding: list[float]


class ModelDetails(Struct):
    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class Tag(Struct):
    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: ModelDetails
    expires_at: str | UnsetType = UNSET
    size_vram: int | UnsetType = UNSET
    context_length: int | UnsetType = UNSET


class Tags(Struct):
    models: list[Tag]


class Version(Struct):
    version: str


class Shown(Struct):
    modelfile: str
    parameters: str
    template: str
    details: ModelDetails
    model_info: dict[str, Any]
    capabilities: list[str]
    modified_at: str
