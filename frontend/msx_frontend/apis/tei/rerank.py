"""TEI's `/rerank`; clients of Cohere and Jina that call the same path are told by their `documents`."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from msx_core.generation import CLASSIFY, ClassifyReply, ClassifyRequest
from msx_core.generation.wire import Positive
from msx_frontend.apis.tei.truncation import is_left, limit
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import check_some
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.ranking import (
    RERANK,
    Document,
    RerankRequest,
    by_score,
    check_query,
    ranking,
    scale_of,
)
from msx_frontend.generation.replies import JsonReply, model_header
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.truncation import Truncation


class RerankTexts(msgspec.Struct, kw_only=True):
    """TEI's members, and those of Cohere and Jina; either `texts` or `documents`."""

    query: str
    texts: list[str] | None = None
    raw_scores: bool = False
    return_text: bool = False
    truncate: bool | None = None
    truncation_direction: str = "Right"
    documents: list[str | Document] | None = None
    top_n: Positive | None = None
    return_documents: bool | None = None
    truncate_prompt_tokens: Truncation | None = None
    max_tokens_per_doc: Positive | None = None
    model: str | None = None


class RankedText(msgspec.Struct, kw_only=True):
    index: int
    score: float
    text: str | UnsetType = UNSET


def rerank(request: TextRequest) -> OperationReply[ClassifyReply]:
    asked = request.read(RerankTexts)
    if (asked.texts is None) == (asked.documents is None):
        raise WrongParameter("texts", "needed, or documents; one of them alone")
    version = request.directory.find_for_tei(asked.model, RERANK)
    if asked.documents is not None:
        return ranking(request, _in_coheres_shape(asked, asked.documents), version)
    texts = asked.texts or []
    request.names = {"input": "query"}
    check_query(asked.query)
    left = is_left(asked.truncation_direction)
    check_some("texts", texts)
    scale, most = scale_of(raw=asked.raw_scores), limit(version, asked.truncate)
    messages = [
        ClassifyRequest(input=asked.query, pair=text, scale=scale, truncate=most, truncate_left=left) for text in texts
    ]

    def write(replies: list[ClassifyReply]) -> JsonReply:
        ranked = [
            RankedText(index=place, score=replies[place].scores[0], text=texts[place] if asked.return_text else UNSET)
            for place in by_score(replies)
        ]
        return JsonReply(ranked, [model_header(version)])

    return OperationReply(version, CLASSIFY, messages, ClassifyReply, write)


def _in_coheres_shape(asked: RerankTexts, documents: list[str | Document]) -> RerankRequest:
    return RerankRequest(
        query=asked.query,
        documents=documents,
        top_n=asked.top_n,
        return_documents=asked.return_documents,
        truncate_prompt_tokens=asked.truncate_prompt_tokens,
        max_tokens_per_doc=asked.max_tokens_per_doc,
    )
