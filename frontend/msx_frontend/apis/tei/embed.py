"""TEI's `/embed` and `/similarity`."""

from __future__ import annotations

import struct

import msgspec

from msx_frontend.generation.decoding import decode
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import Inputs, check_count, text_inputs
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.models.model_version import ModelVersion
from msx_sdk.generation import EMBED, Capabilities, EmbedReply, EmbedRequest
from msx_sdk.generation._wire import Positive


class EmbedTexts(msgspec.Struct, kw_only=True):
    inputs: Inputs
    normalize: bool = True
    truncate: bool | None = None
    truncation_direction: str = "Right"
    dimensions: Positive | None = None
    prompt_name: str | None = None
    model: str | None = None
    """MSX's own member: TEI serves one model."""


class SimilarTexts(msgspec.Struct):
    source_sentence: str
    sentences: list[str]


class SimilarityParameters(msgspec.Struct, kw_only=True):
    truncate: bool | None = None
    truncation_direction: str = "Right"
    prompt_name: str | None = None


class SimilarityRequest(msgspec.Struct, kw_only=True):
    inputs: SimilarTexts
    parameters: SimilarityParameters | None = None
    model: str | None = None
    """MSX's own member."""


def embed(request: TextRequest) -> OperationReply[EmbedReply]:
    asked = decode(request.body, EmbedTexts)
    request.names = {"input": "inputs"}
    check_unserved(asked.truncation_direction, asked.prompt_name)
    texts = text_inputs("inputs", asked.inputs)
    version = request.directory.find_for_tei(asked.model, EMBED)
    most = limit(version, asked.truncate)
    messages = [
        EmbedRequest(input=text, dimensions=asked.dimensions, truncate=most, normalize=asked.normalize)
        for text in texts
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        return JsonReply(_vectors(version, replies), [named(version)])

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def similarity(request: TextRequest) -> OperationReply[EmbedReply]:
    """Cosines of the angles between the first text's vector and the others'."""
    asked = decode(request.body, SimilarityRequest)
    request.names = {"input": "inputs"}
    parameters = asked.parameters or SimilarityParameters()
    check_unserved(parameters.truncation_direction, parameters.prompt_name)
    check_count("inputs.sentences", asked.inputs.sentences)
    texts = [asked.inputs.source_sentence, *asked.inputs.sentences]
    if "" in texts:
        raise WrongParameter("inputs", "texts of at least one character are needed")
    version = request.directory.find_for_tei(asked.model, EMBED)
    most = limit(version, parameters.truncate)
    messages = [EmbedRequest(input=text, truncate=most, normalize=True) for text in texts]

    def write(replies: list[EmbedReply]) -> JsonReply:
        source, *others = _vectors(version, replies)
        cosines = [sum(a * b for a, b in zip(source, other, strict=True)) for other in others]
        return JsonReply(cosines, [named(version)])

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def check_unserved(direction: str, prompt_name: str | None = None) -> None:
    """Raises WrongParameter for what would give other numbers than were asked for."""
    if direction.lower() != "right":
        raise WrongParameter("truncation_direction", f"only Right is served, not {direction}: cut the text yourself")
    if prompt_name is not None:
        raise WrongParameter("prompt_name", "not served: write the prompt before the text")


def limit(version: ModelVersion, truncate: bool | None) -> int | None:
    """The most tokens of a text that may be cut."""
    return (version.capabilities or Capabilities()).max_input_tokens if truncate else None


def named(version: ModelVersion) -> tuple[str, str]:
    """The header that names the model: TEI's clients do not name one."""
    return "x-msx-model", version.source.name


def _vectors(version: ModelVersion, replies: list[EmbedReply]) -> list[tuple[float, ...]]:
    version.metrics.text.prompt.inc(sum(reply.prompt_tokens for reply in replies))
    return [struct.unpack(f"<{len(reply.embedding) // 4}f", reply.embedding) for reply in replies]
