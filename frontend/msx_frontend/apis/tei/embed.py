"""TEI's `/embed` and `/similarity`."""

from __future__ import annotations

import msgspec

from msx_core.generation import EMBED, EmbedReply, EmbedRequest
from msx_core.generation.wire import Positive
from msx_frontend.apis.tei.truncation import is_left, limit
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import Inputs, check_some, text_inputs
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import JsonReply, model_header
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.vectors import cosines, vector_json, vector_of


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
    asked = request.read(EmbedTexts)
    request.names = {"input": "inputs"}
    left = is_left(asked.truncation_direction)
    texts = text_inputs("inputs", asked.inputs)
    version = request.directory.find_for_tei(asked.model, EMBED)
    most = limit(version, asked.truncate)
    messages = [
        EmbedRequest(
            input=text,
            dimensions=asked.dimensions,
            truncate=most,
            truncate_left=left,
            normalize=asked.normalize,
            prompt_name=asked.prompt_name,
        )
        for text in texts
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        return JsonReply([vector_json(reply) for reply in replies], [model_header(version)])

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def similarity(request: TextRequest) -> OperationReply[EmbedReply]:
    """Cosines of the angles between the first text's vector and the others'."""
    asked = request.read(SimilarityRequest)
    request.names = {"input": "inputs"}
    parameters = asked.parameters or SimilarityParameters()
    left = is_left(parameters.truncation_direction)
    check_some("inputs.sentences", asked.inputs.sentences)
    texts = [asked.inputs.source_sentence, *asked.inputs.sentences]
    if "" in texts:
        raise WrongParameter("inputs", "texts of at least one character are needed")
    version = request.directory.find_for_tei(asked.model, EMBED)
    most = limit(version, parameters.truncate)
    name = parameters.prompt_name
    messages = [
        EmbedRequest(input=text, truncate=most, truncate_left=left, normalize=True, prompt_name=name) for text in texts
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        source, *others = (vector_of(reply) for reply in replies)
        return JsonReply(cosines([source], others), [model_header(version)])

    return OperationReply(version, EMBED, messages, EmbedReply, write)
