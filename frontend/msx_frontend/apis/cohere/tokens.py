"""Cohere's `/v1/tokenize` and `/v1/detokenize`."""

from __future__ import annotations

from msx_core.generation import TOKENIZE, TokenizeReply, TokenizeRequest
from msx_frontend.apis.cohere.meta import meta_of
from msx_frontend.apis.cohere.request import CohereDetokenize, CohereTokenize
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest

META = meta_of("1")


def tokenize(request: TextRequest) -> OperationReply[TokenizeReply]:
    """The tokens of the text alone: Cohere's has no special ones."""
    asked = request.read(CohereTokenize)
    request.names = {"prompt": "text"}
    version = request.directory.find_for_tokens(asked.model)
    message = TokenizeRequest(prompt=asked.text, add_special_tokens=False)

    def write(replies: list[TokenizeReply]) -> JsonReply:
        spans = replies[0].tokens
        found = {"tokens": [one.id for one in spans], "token_strings": [one.text for one in spans]}
        return JsonReply({**found, "meta": META})

    return OperationReply(version, TOKENIZE, [message], TokenizeReply, write)


def detokenize(request: TextRequest) -> OperationReply[TokenizeReply]:
    asked = request.read(CohereDetokenize)
    request.names = {"ids": "tokens"}
    version = request.directory.find_for_tokens(asked.model)

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply({"text": replies[0].text, "meta": META})

    return OperationReply(version, TOKENIZE, [TokenizeRequest(ids=asked.tokens)], TokenizeReply, write)
