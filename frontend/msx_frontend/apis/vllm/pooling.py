"""vLLM's `/classify` and `/pooling`: the numbers that a model makes of texts."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from msx_core.generation import CLASSIFY, EMBED, Capabilities, ClassifyReply, ClassifyRequest, EmbedReply, EmbedRequest
from msx_core.generation.classify import by_label
from msx_core.service_errors import ModelNotFound, NotOffered
from msx_frontend.apis.vllm.lists import listed
from msx_frontend.apis.vllm.request import NAMES, ClassificationRequest, PoolingRequest
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import text_inputs
from msx_frontend.generation.operations import OperationReply, tokens_of
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.vectors import numbers_json, vector_of
from msx_frontend.models.versions.model_version import ModelVersion


def classify(request: TextRequest) -> OperationReply[ClassifyReply]:
    asked = request.read(ClassificationRequest)
    request.names = NAMES
    version = request.directory.find(asked.model, CLASSIFY)
    messages, labels = _classified(asked, version), (version.schema.capabilities or Capabilities()).labels

    def write(replies: list[ClassifyReply]) -> JsonReply:
        data = [_class(place, labels, reply.scores) for place, reply in enumerate(replies)]
        return listed(f"classify-{request.id}", version.called(asked.model), data, tokens_of(replies))

    return OperationReply(version, CLASSIFY, messages, ClassifyReply, write)


def pooling(request: TextRequest) -> OperationReply[ClassifyReply] | OperationReply[EmbedReply]:
    asked = request.read(PoolingRequest)
    request.names = NAMES
    _check(asked)
    version = _version(request, asked)
    offered = version.schema.capabilities or Capabilities()
    if asked.task == "classify" or (asked.task is None and not offered.embed):
        return _scores(request, asked, version)
    return _vectors(request, asked, version)


def _check(asked: PoolingRequest) -> None:
    """Raises WrongParameter."""
    if asked.task in ("token_embed", "token_classify"):
        raise WrongParameter("task", f"{asked.task} is not served: the states of single tokens are not read")
    if asked.task == "plugin":
        raise WrongParameter("task", "plugin is not served: this server has no extensions of vLLM's")
    if asked.encoding_format in ("bytes", "bytes_only"):
        raise WrongParameter("encoding_format", f"{asked.encoding_format} is not served: base64 has the same numbers")


def _version(request: TextRequest, asked: PoolingRequest) -> ModelVersion:
    """The model of the task; without one, a model that embeds, else one that classifies."""
    if asked.task is not None:
        return request.directory.find(asked.model, asked.task)
    try:
        return request.directory.find(asked.model, EMBED)
    except (NotOffered, ModelNotFound):
        return request.directory.find(asked.model, CLASSIFY)


def _vectors(request: TextRequest, asked: PoolingRequest, version: ModelVersion) -> OperationReply[EmbedReply]:
    most, left = asked.most_tokens(version), asked.truncate_left
    messages = [
        EmbedRequest(
            input=text,
            dimensions=asked.dimensions,
            truncate=most,
            truncate_left=left,
            normalize=asked.use_activation,
        )
        for text in text_inputs("input", asked.given)
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        return _pooled(request, asked, version, map(vector_of, replies), tokens_of(replies))

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def _scores(request: TextRequest, asked: PoolingRequest, version: ModelVersion) -> OperationReply[ClassifyReply]:
    if asked.dimensions is not None:
        raise WrongParameter("dimensions", "only for vectors; this model has scores")

    def write(replies: list[ClassifyReply]) -> JsonReply:
        return _pooled(request, asked, version, (reply.scores for reply in replies), tokens_of(replies))

    return OperationReply(version, CLASSIFY, _classified(asked, version), ClassifyReply, write)


def _classified(asked: ClassificationRequest, version: ModelVersion) -> list[ClassifyRequest]:
    most, left = asked.most_tokens(version), asked.truncate_left
    return [
        ClassifyRequest(input=text, scale=asked.scale, truncate=most, truncate_left=left)
        for text in text_inputs("input", asked.given)
    ]


def _class(place: int, labels: tuple[str, ...], scores: Sequence[float]) -> dict[str, Any]:
    named = by_label(labels, scores)
    likeliest = max(named, key=lambda label: named[label])
    return {"index": place, "label": likeliest, "probs": scores, "num_classes": len(scores)}


def _pooled(
    request: TextRequest, asked: PoolingRequest, version: ModelVersion, found: Iterable[tuple[float, ...]], tokens: int
) -> JsonReply:
    data = [
        {"index": place, "object": "pooling", "data": _encoded(numbers, asked.encoding_format)}
        for place, numbers in enumerate(found)
    ]
    return listed(f"pool-{request.id}", version.called(asked.model), data, tokens)


def _encoded(numbers: tuple[float, ...], encoding: str | None) -> str | msgspec.Raw:
    if encoding == "base64":
        return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
    return numbers_json(numbers)
