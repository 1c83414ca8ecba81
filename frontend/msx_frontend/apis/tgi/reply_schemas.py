"""Schemas of the replies of TGI's API, for /openapi.json: what clients read. Replies are written without them.

Members that are not in every reply have the default UNSET. Shapes: TGI's own OpenAPI document.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from msx_frontend.generation.tgi_tokens import Finish, PrefillToken, TextToken
from msx_sdk.generation import TextSpan


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


class Info(Struct):
    model_id: str
    model_sha: str | None
    model_pipeline_tag: str | None
    max_concurrent_requests: int | None
    max_best_of: int
    max_stop_sequences: int
    max_input_tokens: int | None
    max_total_tokens: int | None
    validation_workers: int
    max_client_batch_size: int
    router: str
    version: str
    sha: str | None
    docker_label: str | None
