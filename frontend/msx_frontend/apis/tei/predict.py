"""TEI's `/predict`: labels and their scores."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from msx_core.generation import CLASSIFY, Capabilities, ClassifyReply, ClassifyRequest
from msx_core.generation.classify import by_label
from msx_frontend.apis.tei.truncation import is_left, limit
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import check_some
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.ranking import scale_of
from msx_frontend.generation.replies import JsonReply, model_header
from msx_frontend.generation.text_request import TextRequest

Inputs = str | list[str | list[str]]


class PredictRequest(msgspec.Struct, kw_only=True):
    """`inputs` is a text, a pair of texts, or a list that has lists of one or two texts."""

    inputs: Inputs
    raw_scores: bool = False
    truncate: bool | None = None
    truncation_direction: str = "Right"
    model: str | None = None
    """MSX's own member: TEI serves one model."""


class ScoredLabel(msgspec.Struct):
    score: float
    label: str


class Pair(NamedTuple):
    text: str
    second: str | None = None


def predict(request: TextRequest) -> OperationReply[ClassifyReply]:
    asked = request.read(PredictRequest)
    request.names = {"input": "inputs"}
    left = is_left(asked.truncation_direction)
    pairs, batch = _pairs(asked.inputs)
    version = request.directory.find_for_tei(asked.model, CLASSIFY)
    scale, most = scale_of(raw=asked.raw_scores), limit(version, asked.truncate)
    messages = [
        ClassifyRequest(input=one.text, pair=one.second, scale=scale, truncate=most, truncate_left=left)
        for one in pairs
    ]
    labels = (version.schema.capabilities or Capabilities()).labels

    def write(replies: list[ClassifyReply]) -> JsonReply:
        found = [_labels(labels, reply) for reply in replies]
        return JsonReply(found if batch else found[0], [model_header(version)])

    return OperationReply(version, CLASSIFY, messages, ClassifyReply, write)


def _pairs(given: Inputs) -> tuple[list[Pair], bool]:
    """The texts, and whether they are a list of several. Raises WrongParameter."""
    batch = isinstance(given, list) and not all(isinstance(one, str) for one in given)
    check_some("inputs", given)
    parts = list(given) if batch else [given]
    pairs = [_pair([one] if isinstance(one, str) else one) for one in parts]
    return pairs, batch


def _pair(texts: list[str | list[str]] | list[str]) -> Pair:
    words = [one for one in texts if isinstance(one, str)]
    if len(words) not in (1, 2) or not all(words):
        raise WrongParameter("inputs", "a text, a pair of texts, or a list of lists of one or two texts is needed")
    return Pair(*words)


def _labels(labels: tuple[str, ...], reply: ClassifyReply) -> list[ScoredLabel]:
    """The likeliest first."""
    found = [ScoredLabel(score, label) for label, score in by_label(labels, reply.scores).items()]
    return sorted(found, key=lambda one: -one.score)
