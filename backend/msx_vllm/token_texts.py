"""Tokens as clients see them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from msx_sdk.generation import Token, TopToken
from msx_vllm.outputs import Score, Scores

REPLACED = "\ufffd"
MOST_KNOWN = 1 << 16
"""Tokens that are remembered."""


class Pieces(Protocol):
    """A tokenizer."""

    @property
    def all_special_ids(self) -> Sequence[int]: ...

    def decode(self, ids: list[int], skip_special_tokens: bool = False) -> str: ...

    def convert_ids_to_tokens(self, ids: list[int]) -> Sequence[str | None]: ...


class TokenTexts:
    def __init__(self, tokenizer: Pieces) -> None:
        self._tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_ids)
        self.plain = lru_cache(MOST_KNOWN)(self._plain)

    def scored(self, id: int, scores: Scores, top: int) -> Token:
        """The token with its score and the `top` likeliest ones at its place."""
        own, plain = scores[id], self.plain(id)
        best = sorted(((place(score), other) for other, score in scores.items()), key=lambda one: one[0])[:top]
        others = tuple(
            TopToken(id=other, text=self.plain(other).text, logprob=scores[other].logprob)
            for rank, other in best
            if rank <= top
        )
        return Token(
            id=id,
            text=plain.text,
            special=plain.special,
            logprob=own.logprob,
            bytes=self.bytes_of(id),
            top=others,
            rank=own.rank,
        )

    def bytes_of(self, id: int) -> bytes:
        """The bytes of a token; of a part of a character those that its piece in the vocabulary stands for."""
        text = self.plain(id).text
        if REPLACED not in text:
            return text.encode()
        return piece_bytes(self._tokenizer.convert_ids_to_tokens([id])[0] or "")

    def _plain(self, id: int) -> Token:
        return Token(id=id, text=self._tokenizer.decode([id], skip_special_tokens=False), special=id in self._special)


def place(score: Score) -> int:
    return MOST_KNOWN if score.rank is None else score.rank


def piece_bytes(piece: str) -> bytes:
    """The bytes of a piece of a vocabulary: `<0xE2>`, or characters that stand for bytes (GPT-2's table)."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes.fromhex(piece[3:5])
    known = _bytes_of_characters()
    return b"".join(bytes([known[one]]) if one in known else one.encode() for one in piece)


@lru_cache(1)
def _bytes_of_characters() -> dict[str, int]:
    """GPT-2's table: bytes that can be printed stand for themselves, the others for characters from 256 on."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    return {chr(byte): byte for byte in printed} | {chr(256 + at): byte for at, byte in enumerate(others)}
