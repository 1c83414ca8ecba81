"""TEI's `/tokenize`, a form of TGI's, and `/decode`."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from msx_core.generation import TOKENIZE, TokenizeReply, TokenizeRequest
from msx_core.generation.wire import Tokens
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import check_some
from msx_frontend.generation.operations import OperationReply
from msx_frontend.generation.replies import JsonReply, model_header
from msx_frontend.generation.text_request import TextRequest


class TokenizeTexts(Struct, kw_only=True):
    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = None
    model: str | None = None
    """MSX's own member: TEI serves one model."""


class SimpleToken(Struct, kw_only=True):
    """`start` and `stop` are missing for a special token that stands in no text."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class DecodeTokens(Struct, kw_only=True):
    ids: list[int | list[int]]
    skip_special_tokens: bool = True
    model: str | None = None
    """MSX's own member."""


def tokenize(request: TextRequest) -> OperationReply[TokenizeReply]:
    """A list of tokens for each text."""
    asked = request.read(TokenizeTexts)
    texts = [asked.inputs] if isinstance(asked.inputs, str) else asked.inputs
    check_some("inputs", texts)
    if "" in texts:
        raise WrongParameter("inputs", "texts of at least one character are needed")
    if asked.prompt_name is not None:
        raise WrongParameter("prompt_name", "not served here: put the prompt before the text")
    version = request.directory.find_for_tokens(asked.model)
    messages = [TokenizeRequest(prompt=text, add_special_tokens=asked.add_special_tokens) for text in texts]

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply([_tokens(reply) for reply in replies], [model_header(version)])

    return OperationReply(version, TOKENIZE, messages, TokenizeReply, write)


def decode_tokens(request: TextRequest) -> OperationReply[TokenizeReply]:
    """A text for each list of ids."""
    asked = request.read(DecodeTokens)
    request.names = {"tokens": "ids"}
    version = request.directory.find_for_tokens(asked.model)
    skip = asked.skip_special_tokens
    messages = [TokenizeRequest(ids=ids, skip_special_tokens=skip) for ids in _lists(asked.ids)]

    def write(replies: list[TokenizeReply]) -> JsonReply:
        return JsonReply([reply.text for reply in replies], [model_header(version)])

    return OperationReply(version, TOKENIZE, messages, TokenizeReply, write)


def _lists(given: list[int | list[int]]) -> list[Tokens]:
    """Raises WrongParameter."""
    check_some("ids", given)
    lists = given if any(isinstance(one, list) for one in given) else [given]
    try:
        return msgspec.convert(lists, list[Tokens])
    except msgspec.ValidationError:
        raise WrongParameter("ids", "token ids, or a list of lists of them, are needed") from None


def _tokens(reply: TokenizeReply) -> list[SimpleToken]:
    return [
        SimpleToken(
            id=one.id,
            text=one.text or reply.special.get(one.id, ""),
            special=one.id in reply.special,
            start=one.start if one.text else None,
            stop=one.stop if one.text else None,
        )
        for one in reply.tokens
    ]
