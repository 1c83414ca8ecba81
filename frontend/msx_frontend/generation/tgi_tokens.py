"""Tokens and reasons as TGI writes them."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from msx_core.generation import FinishReason, Token

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
