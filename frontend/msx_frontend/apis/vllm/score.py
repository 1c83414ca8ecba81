"""vLLM's `/score`: how well second texts fit first ones, by a model that reranks or by the angle between vectors."""

from __future__ import annotations

from typing import NamedTuple

from msx_core.generation import CLASSIFY, EMBED, ClassifyReply, ClassifyRequest, EmbedReply, EmbedRequest
from msx_core.service_errors import ModelNotFound, NotOffered
from msx_frontend.apis.vllm.lists import listed
from msx_frontend.apis.vllm.request import NAMES, ScoreRequest
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.operations import OperationReply, tokens_of
from msx_frontend.generation.ranking import RERANK
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.vectors import cosines, vector_of
from msx_frontend.models.versions.model_version import ModelVersion

PAIRS = (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2"))
"""Names of the two lists."""
UNSERVED = {
    "max_tokens_per_query": "not served: truncate_prompt_tokens bounds both texts of a pair",
    "max_tokens_per_doc": "not served: truncate_prompt_tokens bounds both texts of a pair",
    "instruction": "not served: write it into template of classification in the model's model-config.yaml",
    "chat_template_kwargs": "not served: the template of classification in the model's model-config.yaml has no others",
}


class Sides(NamedTuple):
    """First and second texts, as many of both, or one first text for all."""

    first: list[str]
    second: list[str]

    def pairs(self) -> list[tuple[str, str]]:
        first = self.first * len(self.second) if len(self.first) == 1 else self.first
        return list(zip(first, self.second, strict=True))


def score(request: TextRequest) -> OperationReply[ClassifyReply] | OperationReply[EmbedReply]:
    asked = request.read(ScoreRequest)
    request.names = NAMES
    for name, why in UNSERVED.items():
        if getattr(asked, name):
            raise WrongParameter(name, why)
    sides = _sides(asked)
    request.names = {**NAMES, "input": _first_name(asked)}
    version = _version(request, asked.model)
    offered = version.schema.capabilities
    if offered is None or offered.rerank:
        return _by_pairs(request, asked, version, sides)
    return _by_angles(request, asked, version, sides)


def _version(request: TextRequest, name: str | None) -> ModelVersion:
    """A model that reranks, else one that embeds. Raises the error of the first search where neither is there."""
    try:
        return request.directory.find(name, RERANK)
    except (NotOffered, ModelNotFound) as error:
        try:
            return request.directory.find(name, EMBED)
        except (NotOffered, ModelNotFound):
            raise error from None


def _sides(asked: ScoreRequest) -> Sides:
    """Raises WrongParameter."""
    for names in PAIRS:
        given = [getattr(asked, name) for name in names]
        if None not in given:
            sides = Sides(*([one] if isinstance(one, str) else one for one in given))
            _check(names, sides)
            return sides
    raise WrongParameter("text_1", "text_1 and text_2 are needed, or queries and documents")


def _first_name(asked: ScoreRequest) -> str:
    return next(pair[0] for pair in PAIRS if None not in [getattr(asked, name) for name in pair])


def _check(names: tuple[str, str], sides: Sides) -> None:
    for name, texts in zip(names, sides, strict=True):
        if not texts or "" in texts:
            raise WrongParameter(name, "at least one text is needed, and none of them empty")
    if len(sides.first) not in (1, len(sides.second)):
        raise WrongParameter(names[0], f"one text is needed, or as many as {names[1]} has, {len(sides.second)}")


def _by_pairs(
    request: TextRequest, asked: ScoreRequest, version: ModelVersion, sides: Sides
) -> OperationReply[ClassifyReply]:
    most, left = asked.most_tokens(version), asked.truncate_left
    messages = [
        ClassifyRequest(input=first, pair=second, scale=asked.scale, truncate=most, truncate_left=left)
        for first, second in sides.pairs()
    ]

    def write(replies: list[ClassifyReply]) -> JsonReply:
        return _reply(request, asked, version, [reply.scores[0] for reply in replies], tokens_of(replies))

    return OperationReply(version, CLASSIFY, messages, ClassifyReply, write)


def _by_angles(
    request: TextRequest, asked: ScoreRequest, version: ModelVersion, sides: Sides
) -> OperationReply[EmbedReply]:
    most, left = asked.most_tokens(version), asked.truncate_left
    messages = [EmbedRequest(input=text, truncate=most, truncate_left=left) for text in (*sides.first, *sides.second)]

    def write(replies: list[EmbedReply]) -> JsonReply:
        vectors = [vector_of(reply) for reply in replies]
        scores = cosines(vectors[: len(sides.first)], vectors[len(sides.first) :])
        return _reply(request, asked, version, scores, tokens_of(replies))

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def _reply(
    request: TextRequest, asked: ScoreRequest, version: ModelVersion, scores: list[float], tokens: int
) -> JsonReply:
    data = [{"index": place, "object": "score", "score": score} for place, score in enumerate(scores)]
    return listed(f"score-{request.id}", version.called(asked.model), data, tokens)
