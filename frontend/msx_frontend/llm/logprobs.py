"""Log-probabilities in OpenAI's two shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msx_sdk.generation import Token

LEAST = -9999.0
"""JSON has no infinity; OpenAI writes this one for what is all but impossible."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def chat_logprobs(tokens: Iterable[Token], top: int) -> dict[str, Any]:
    """`top` is how many of the likeliest were asked for at each place."""
    return {"content": [_chat_token(token, top) for token in _spoken(tokens)], "refusal": None}


def completion_logprobs(tokens: Iterable[Token], offset: int) -> dict[str, Any]:
    """`offset` is the place of the first token in the text, in characters."""
    offsets, tokens = [], _spoken(tokens)
    for token in tokens:
        offsets.append(offset)
        offset += len(token.text)
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [_bounded(token.logprob) for token in tokens],
        "top_logprobs": [_top(token) for token in tokens],
        "text_offset": offsets,
    }


def _spoken(tokens: Iterable[Token]) -> list[Token]:
    """Those whose text is in the text: OpenAI tells nothing of what ends it."""
    return [token for token in tokens if not token.special]


def _chat_token(token: Token, top: int) -> dict[str, Any]:
    likeliest = [
        {"token": one.text, "bytes": _bytes(one.text), "logprob": _bounded(one.logprob)} for one in token.top[:top]
    ]
    own = list(token.bytes) if token.bytes else _bytes(token.text)
    return {"token": token.text, "bytes": own, "logprob": _bounded(token.logprob or 0.0), "top_logprobs": likeliest}


def _top(token: Token) -> dict[str, float | None] | None:
    """Of the first token of a prompt nothing is known."""
    if token.logprob is None:
        return None
    return {one.text: _bounded(one.logprob) for one in token.top}


def _bytes(text: str) -> list[int] | None:
    return None if REPLACEMENT in text else list(text.encode())


def _bounded(logprob: float | None) -> float | None:
    return None if logprob is None else max(logprob, LEAST)
