"""Schemas of the replies of TGI's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: TGI's own OpenAPI document.
"""

from msgspec import UNSET, Struct, UnsetType

from msx_core.generation import TextSpan
from msx_frontend.generation.tgi_tokens import Finish, PrefillToken, TextToken


class TextDetails(Struct, kw_only=True):
    finish_reason: Finish
    generated_tokens: int
    seed: int | None
    prefill: list[PrefillToken]
    tokens: list[TextToken]
    top_tokens: list[list[TextToken]] | UnsetType = UNSET


class BestOfSequence(TextDetails, kw_only=True):
    """One of `best_of`."""

    generated_text: str


class Details(TextDetails, kw_only=True):
    best_of_sequences: list[BestOfSequence] | UnsetType = UNSET


class Generated(Struct):
    generated_text: str
    details: Details | UnsetType = UNSET


class StreamDetails(Struct):
    finish_reason: Finish
    generated_tokens: int
    input_length: int
    seed: int | None


class StreamEvent(Struct):
    """One token; the last event has the complete text."""

    index: int
    token: TextToken
    generated_text: str | None
    details: StreamDetails | None
    top_tokens: list[TextToken] | UnsetType = UNSET


class ChatTokens(Struct):
    tokenize_response: list[TextSpan]
    templated_text: str | None


Ids = dict[str, dict[str, str | int]]


class Info(Struct, kw_only=True):
    """TGI's members of a server that generates; TEI's of one whose models embed or classify."""

    model_id: str
    model_sha: str | None
    max_concurrent_requests: int | None
    max_client_batch_size: int
    router: str
    version: str
    sha: str | None
    docker_label: str | None
    model_pipeline_tag: str | UnsetType | None = UNSET
    max_best_of: int | UnsetType = UNSET
    max_stop_sequences: int | UnsetType = UNSET
    max_input_tokens: int | UnsetType | None = UNSET
    max_total_tokens: int | UnsetType | None = UNSET
    validation_workers: int | UnsetType = UNSET
    model_dtype: str | UnsetType | None = UNSET
    model_type: dict[str, Ids] | UnsetType = UNSET
    """`embedding`, `reranker` or `classifier`; of the last two `id2label` and `label2id`."""
    max_input_length: int | UnsetType | None = UNSET
    max_batch_tokens: int | UnsetType | None = UNSET
    max_batch_requests: int | UnsetType | None = UNSET
    auto_truncate: bool | UnsetType = UNSET
    tokenization_workers: int | UnsetType = UNSET
