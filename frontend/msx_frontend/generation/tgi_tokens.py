"""Tokens and reasons as TGI writes them."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, structs

from msx_core.generation import FinishReason, GenerateDelta, Token

Finish = Literal["length", "eos_token", "stop_sequence"]


class PrefillToken(Struct):
    """Token as `prefill` writes it, for /openapi.json."""

    id: int
    text: str
    logprob: float | None


class TextToken(PrefillToken):
    """Token as `described` and `likeliest` write it, for /openapi.json."""

    special: bool


FINISH: dict[FinishReason, str] = {"stop": "stop_sequence", "eos": "eos_token", "length": "length"}


def described(token: Token) -> dict[str, Any]:
    return {"id": token.id, "text": token.text, "logprob": token.logprob, "special": token.special}


def likeliest(token: Token) -> list[dict[str, Any]]:
    return [{"id": one.id, "text": one.text, "logprob": one.logprob, "special": False} for one in token.top]


def prefill(tokens: Sequence[Token]) -> list[dict[str, Any]]:
    """The first token of a prompt does not have a log-probability."""
    return [{"id": token.id, "text": token.text, "logprob": token.logprob} for token in tokens]


def told(delta: GenerateDelta) -> list[Token]:
    """Tokens of a stream's delta, for events.

    Clients join the texts of tokens, so that the last of a delta has all of its text, which is whole characters. Some
    leave out what is special, some do not: that has none of it, and no text of its own.
    """
    if not delta.tokens and (delta.text or delta.finish_reason is not None):
        return [Token(id=0, text=delta.text, logprob=0.0, special=not delta.text)]
    if len(delta.tokens) == 1 and delta.tokens[0].text == delta.text:
        return [_last(delta.tokens[0], delta.text)] if delta.tokens[0].special else [*delta.tokens]
    silent = [structs.replace(token, text="") for token in delta.tokens[:-1]]
    return [*silent, *(_last(token, delta.text) for token in delta.tokens[-1:])]


def _last(token: Token, text: str) -> Token:
    return structs.replace(token, text=text, special=token.special and not text)
