"""Cohere's `/v2/embed`."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from msx_core.generation import EMBED, Capabilities, EmbedReply, EmbedRequest
from msx_frontend.apis.cohere.meta import meta_of
from msx_frontend.apis.cohere.request import CohereEmbed, CohereInput
from msx_frontend.generation.errors import WrongParameter
from msx_frontend.generation.inputs import text_inputs
from msx_frontend.generation.operations import OperationReply, tokens_of
from msx_frontend.generation.replies import JsonReply
from msx_frontend.generation.text_request import TextRequest
from msx_frontend.generation.vectors import vector_json, vector_of

PROMPTS = {
    "search_query": ("search_query", "query"),
    "search_document": ("search_document", "document", "passage", "corpus"),
    "classification": ("classification", "Classification"),
    "clustering": ("clustering", "Clustering"),
}
"""Names that models have for the prompts of these kinds of input."""
BYTE = 8


def embed(request: TextRequest) -> OperationReply[EmbedReply]:
    """Texts that are too long are cut at their end, as Cohere does, unless the request says otherwise."""
    asked = request.read(CohereEmbed)
    request.names = {"input": "texts", "dimensions": "output_dimension", "truncate": "max_tokens"}
    texts = _texts(asked)
    kinds = list(dict.fromkeys(asked.embedding_types or ["float"]))
    _check_kinds(kinds)
    version = request.directory.find(asked.model, EMBED)
    offered = version.schema.capabilities or Capabilities()
    prompt = prompt_for(asked.input_type, offered.prompts)
    unread = [] if prompt is not None or asked.input_type is None else ["input_type"]
    request.ignored = [*unread, *(["priority"] if asked.priority is not None else [])]
    most = None if asked.truncate == "NONE" else _most(asked.max_tokens, offered.max_input_tokens)
    messages = [
        EmbedRequest(
            input=text,
            dimensions=asked.output_dimension,
            truncate=most,
            truncate_left=asked.truncate == "START",
            prompt_name=prompt,
        )
        for text in text_inputs("texts", [*texts])
    ]

    def write(replies: list[EmbedReply]) -> JsonReply:
        tokens = tokens_of(replies)
        found = {kind: [ENCODINGS[kind](reply) for reply in replies] for kind in kinds}
        head = {"id": request.id, "response_type": "embeddings_by_type"}
        return JsonReply({**head, "embeddings": found, "texts": texts, "meta": meta_of("2", tokens)})

    return OperationReply(version, EMBED, messages, EmbedReply, write)


def prompt_for(kind: str | None, prompts: tuple[str, ...]) -> str | None:
    """The model's prompt for this kind of input, if it has one."""
    return next((name for name in PROMPTS.get(kind or "", (kind,)) if name in prompts), None)


def _most(asked: int | None, offered: int | None) -> int | None:
    """Tokens to which a text is cut."""
    return min(asked, offered) if asked is not None and offered is not None else asked or offered


def _texts(asked: CohereEmbed) -> list[str]:
    """Raises WrongParameter."""
    if asked.images is not None:
        raise WrongParameter("images", "not served: models here make vectors of texts")
    if (asked.texts is None) == (asked.inputs is None):
        raise WrongParameter("texts", "needed, or inputs; one of them alone")
    if asked.texts is not None:
        return asked.texts
    return [_text(f"inputs[{number}]", one) for number, one in enumerate(asked.inputs or ())]


def _text(place: str, one: CohereInput) -> str:
    texts = [part.get("text") for part in one.content if part.get("type") == "text"]
    if len(texts) != len(one.content) or not all(isinstance(text, str) for text in texts):
        raise WrongParameter(f"{place}.content", "expected parts of the type text: models here make vectors of texts")
    return "\n".join(map(str, texts))


def _check_kinds(kinds: list[str]) -> None:
    """Raises WrongParameter."""
    wrong = next((kind for kind in kinds if kind not in ENCODINGS), None)
    if wrong is not None:
        raise WrongParameter(
            "embedding_types",
            f"{wrong[:100]!r} is not served; {', '.join(ENCODINGS)} are, and keep all that a vector has",
        )


def _bits(reply: EmbedReply) -> list[int]:
    """A bit a number, 1 for those that are not negative, the first one highest; the last byte is filled with 0."""
    signs = "".join("1" if number >= 0 else "0" for number in vector_of(reply))
    filled = signs.ljust(-(-len(signs) // BYTE) * BYTE, "0")
    return [int(filled[place : place + BYTE], 2) for place in range(0, len(filled), BYTE)]


ENCODINGS: dict[str, Callable[[EmbedReply], Any]] = {
    "float": vector_json,
    "base64": lambda reply: base64.b64encode(reply.embedding).decode(),
    "ubinary": _bits,
    "binary": lambda reply: [byte - 128 for byte in _bits(reply)],
}
