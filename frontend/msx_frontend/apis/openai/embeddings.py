"""OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec

from msx_core.generation import EMBED, Capabilities, EmbedReply, EmbedRequest
from msx_core.generation.wire import Positive
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import Inputs, text_inputs
from msx_frontend.generation.operations import OperationReply, tokens_of
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.truncation import Truncation, most_tokens
from msx_frontend.generation.vectors import vector_json


class EmbeddingRequest(msgspec.Struct, kw_only=True):
    input: Inputs
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Positive | None = None
    truncate_prompt_tokens: Truncation | None = None


def embeddings(request: TextRequest) -> OperationReply[EmbedReply]:
    asked = request.read(EmbeddingRequest)
    request.names = {"truncate": "truncate_prompt_tokens"}
    version = request.directory.find(asked.model, EMBED)
    offered = version.schema.capabilities or Capabilities()
    _check_dimensions(asked.dimensions, offered)
    most = most_tokens(asked.truncate_prompt_tokens, offered)
    requests = [
        EmbedRequest(input=one, dimensions=asked.dimensions, truncate=most) for one in text_inputs("input", asked.input)
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        data = [_item(number, reply, asked.encoding_format) for number, reply in enumerate(replies)]
        tokens = tokens_of(replies)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JsonReply({"object": "list", "model": version.called(asked.model), "data": data, "usage": usage})

    return OperationReply(version, EMBED, requests, EmbedReply, write)


def _check_dimensions(dimensions: int | None, offered: Capabilities) -> None:
    if dimensions is not None and offered.embedding_size is not None and dimensions > offered.embedding_size:
        raise WrongParameter("dimensions", f"at most {offered.embedding_size}, not {dimensions}")


def _item(number: int, reply: EmbedReply, encoding: str | None) -> dict[str, Any]:
    if encoding == "base64":
        embedding: Any = base64.b64encode(reply.embedding).decode()
    else:
        embedding = vector_json(reply)
    return {"object": "embedding", "index": number, "embedding": embedding}
