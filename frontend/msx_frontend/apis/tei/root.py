"""TEI's `/`, for clients that know a server by its address alone, as huggingface_hub's: what they send, and what the
model can do, say what they mean."""

from typing import Any

import msgspec

from msx_core.generation import EMBED, TOKENIZE, ClassifyReply, EmbedReply
from msx_frontend.apis.tei.embed import embed, similarity
from msx_frontend.apis.tei.predict import predict
from msx_frontend.apis.tei.rerank import rerank
from msx_frontend.generation.decoding import decode
from msx_frontend.generation.directory import operations_of
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.text_request import TextRequest


class RootRequest(msgspec.Struct, kw_only=True):
    """The members of `/rerank`, `/similarity`, `/embed` or `/predict`."""

    inputs: Any = None
    query: Any = None
    model: str | None = None


def root(request: TextRequest) -> OperationReply[EmbedReply] | OperationReply[ClassifyReply]:
    form = decode(request.body, RootRequest)
    if form.query is not None:
        return rerank(request)
    if isinstance(form.inputs, dict):
        return similarity(request)
    offered = operations_of(request.directory.find_for_tei(form.model, TOKENIZE))
    return embed(request) if EMBED in offered else predict(request)
