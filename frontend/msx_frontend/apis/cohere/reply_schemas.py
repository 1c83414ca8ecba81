"""Schemas of the replies of Cohere's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: https://docs.cohere.com/reference/chat
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field


class CohereCounts(Struct):
    input_tokens: int
    output_tokens: int | UnsetType = UNSET


class CohereUsage(Struct):
    billed_units: CohereCounts
    tokens: CohereCounts
    cached_tokens: int


class CohereLogprobs(Struct):
    text: str
    token_ids: list[int]
    logprobs: list[float]


class CohereContent(Struct):
    type: Literal["text", "thinking"]
    text: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET


class CohereFunction(Struct):
    name: str
    arguments: str


class CohereCall(Struct):
    id: str
    type: Literal["function"]
    function: CohereFunction


class CohereMessage(Struct):
    role: Literal["assistant"]
    content: list[CohereContent] | UnsetType = UNSET
    tool_plan: str | UnsetType = UNSET
    tool_calls: list[CohereCall] | UnsetType = UNSET


class CohereReply(Struct):
    id: str
    finish_reason: Literal["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL"]
    message: CohereMessage
    usage: CohereUsage
    logprobs: list[CohereLogprobs] | UnsetType = UNSET


class CohereEvent(Struct):
    """`delta` has the part of the message that has grown, or says how it ended."""

    type: Literal[
        "message-start",
        "content-start",
        "content-delta",
        "content-end",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
        "message-end",
    ]
    id: str | UnsetType = UNSET
    index: int | UnsetType = UNSET
    delta: dict[str, Any] | UnsetType = UNSET
    logprobs: CohereLogprobs | UnsetType = UNSET


class CohereApiVersion(Struct):
    version: str


class CohereMeta(Struct):
    api_version: CohereApiVersion
    billed_units: CohereCounts | UnsetType = UNSET


class CohereVectors(Struct):
    """Vectors by the types that were asked for."""

    numbers: list[list[float]] | UnsetType = field(default=UNSET, name="float")
    base64: list[str] | UnsetType = UNSET
    binary: list[list[int]] | UnsetType = UNSET
    ubinary: list[list[int]] | UnsetType = UNSET


class CohereEmbedded(Struct):
    id: str
    response_type: Literal["embeddings_by_type"]
    embeddings: CohereVectors
    texts: list[str]
    meta: CohereMeta


class CohereTokens(Struct):
    tokens: list[int]
    token_strings: list[str]
    meta: CohereMeta


class CohereText(Struct):
    text: str
    meta: CohereMeta
