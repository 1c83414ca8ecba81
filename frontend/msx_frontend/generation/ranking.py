"""Documents by how well they fit a query, in the shape of Cohere and Jina."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from msx_core.generation import CLASSIFY, Capabilities, ClassifyReply, ClassifyRequest
from msx_core.generation.classify import Scale
from msx_core.generation.wire import Positive
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import check_some
from msx_frontend.generation.operations import OperationReply, tokens_of
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.truncation import WHOLE, Truncation, most_tokens
from msx_frontend.models.versions.model_version import ModelVersion

RERANK = "rerank"
"""The capability: such models answer to CLASSIFY with one score."""


class Document(Struct):
    text: str


class RerankRequest(Struct, kw_only=True):
    query: str
    documents: list[str | Document]
    model: str | None = None
    top_n: Positive | None = None
    return_documents: bool | None = None
    truncate_prompt_tokens: Truncation | None = None
    max_tokens_per_doc: Positive | None = None
    """Cohere's; it counts tokens of another tokenizer."""


class RankedDocument(Struct, kw_only=True):
    index: int
    relevance_score: float
    document: Document | UnsetType = UNSET


class TokenCount(Struct):
    input_tokens: int


class RankingMeta(Struct):
    tokens: TokenCount


class RankingUsage(Struct):
    prompt_tokens: int
    total_tokens: int


class Ranking(Struct):
    """`usage` is Jina's, `meta` is Cohere's."""

    id: str
    model: str
    results: list[RankedDocument]
    usage: RankingUsage
    meta: RankingMeta


def rerank(request: TextRequest) -> OperationReply[ClassifyReply]:
    """Rank for clients that name the model."""
    asked = request.read(RerankRequest)
    return ranking(request, asked, request.directory.find(asked.model, RERANK))


def ranking(request: TextRequest, asked: RerankRequest, version: ModelVersion) -> OperationReply[ClassifyReply]:
    """Pairs that are too long are cut, as Cohere's and Jina's servers do. Raises WrongParameter."""
    request.names = {"truncate": "truncate_prompt_tokens", "input": "query"}
    offered = version.schema.capabilities or Capabilities()
    texts = [one if isinstance(one, str) else one.text for one in asked.documents]
    check_query(asked.query)
    check_some("documents", texts)
    if asked.max_tokens_per_doc is not None:
        raise WrongParameter("max_tokens_per_doc", "not served: truncate_prompt_tokens bounds a query and its document")
    most = most_tokens(WHOLE if asked.truncate_prompt_tokens is None else asked.truncate_prompt_tokens, offered)
    messages = [ClassifyRequest(input=asked.query, pair=text, truncate=most) for text in texts]

    def write(replies: list[ClassifyReply]) -> JsonReply:
        places = by_score(replies)[: asked.top_n]
        tokens = tokens_of(replies)
        results = [
            RankedDocument(
                index=place,
                relevance_score=replies[place].scores[0],
                document=Document(texts[place]) if asked.return_documents else UNSET,
            )
            for place in places
        ]
        usage, meta = RankingUsage(tokens, tokens), RankingMeta(TokenCount(tokens))
        return JsonReply(Ranking(f"rerank-{request.id}", version.called(asked.model), results, usage, meta))

    return OperationReply(version, CLASSIFY, messages, ClassifyReply, write)


def check_query(query: str) -> None:
    """Raises WrongParameter."""
    if not query:
        raise WrongParameter("query", "a text of at least one character is needed")


def scale_of(*, raw: bool) -> Scale:
    """TEI's `raw_scores`."""
    return "logit" if raw else "probability"


def by_score(replies: Sequence[ClassifyReply]) -> list[int]:
    """The places of the replies, the highest score first, and the first of equal ones."""
    return sorted(range(len(replies)), key=lambda place: -replies[place].scores[0])
