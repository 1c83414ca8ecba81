"""Log-probabilities in OpenAI's two shapes, and of prompts in vLLM's.

Every token has its entry, special ones too: harnesses count them.
"""

import codecs
from collections.abc import Iterable, Sequence
from typing import Any

from msx_core.generation import Token, TopToken

LEAST = -9999.0
"""JSON does not have infinity; OpenAI writes this value for a token that is nearly impossible."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_decoder = codecs.getincrementaldecoder("utf-8")


def chat_logprobs(tokens: Iterable[Token], top: int) -> dict[str, Any]:
    """`top` is how many of the likeliest were asked for at each place."""
    return {"content": [_chat_token(token, top) for token in tokens], "refusal": None}


def completion_logprobs(tokens: Sequence[Token], offsets: list[int], top: int) -> dict[str, Any]:
    """`offsets` by `Offsets.of`; `top` as above."""
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [_bounded(token.logprob) for token in tokens],
        "top_logprobs": [_top(token, top) for token in tokens],
        "text_offset": offsets,
    }


def prompt_logprobs(tokens: Iterable[Token], top: int) -> list[dict[str, Any] | None]:
    """List, for each token but the first, the token itself and the `top` likeliest at its place, by token id."""
    return [None if token.logprob is None else _ranked(token, top) for token in tokens]


class Offsets:
    """Where the tokens of one text begin in it, in characters: a token that is not shown where it would begin."""

    def __init__(self) -> None:
        self._characters = _decoder(errors="replace")
        self._next = self._shown = 0

    def of(self, tokens: Iterable[Token], text: str) -> list[int]:
        """The offsets of the tokens that came with this piece of the text."""
        found = [self._place(token, text) for token in tokens]
        self._shown += len(text)
        return found

    def _place(self, token: Token, text: str) -> int:
        place = self._next
        said = self._characters.decode(token.bytes or token.text.encode())
        begin = max(place - self._shown, 0)
        if not text.startswith(said, begin):
            if not place:
                said = said.lstrip(" ")  # tokenizers put a space before the first word
            if token.special and not text.startswith(said, begin):
                return place
        self._next += len(said)
        return place


def _chat_token(token: Token, top: int) -> dict[str, Any]:
    likeliest = [
        {"token": one.text, "bytes": _bytes(one.text), "logprob": _bounded(one.logprob)} for one in token.top[:top]
    ]
    own = list(token.bytes) if token.bytes else _bytes(token.text)
    return {"token": token.text, "bytes": own, "logprob": _bounded(token.logprob or 0.0), "top_logprobs": likeliest}


def _ranked(token: Token, top: int) -> dict[str, Any]:
    own = {str(token.id): _ranked_token(token, token.rank)}
    likeliest = {str(one.id): _ranked_token(one, rank) for rank, one in enumerate(token.top[:top], 1)}
    return {**own, **likeliest, **own}  # of two that are as likely, the token itself has the better rank


def _ranked_token(token: Token | TopToken, rank: int | None) -> dict[str, Any]:
    return {"logprob": _bounded(token.logprob), "rank": rank, "decoded_token": token.text}


def _top(token: Token, top: int) -> dict[str, float | None] | None:
    """The first token of a prompt has None. Of several tokens with the same text the likeliest counts."""
    if token.logprob is None:
        return None
    return {one.text: _bounded(one.logprob) for one in reversed(token.top[:top])}


def _bytes(text: str) -> list[int] | None:
    return None if REPLACEMENT in text else list(text.encode())


def _bounded(logprob: float | None) -> float | None:
    return None if logprob is None else max(logprob, LEAST)
