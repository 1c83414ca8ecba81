"""The bytes of each token."""

import re
from typing import Any

import tokenizers

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
"""SentencePiece's tokens for single bytes of characters that have no piece."""


def byte_alphabet() -> dict[str, int]:
    """The characters that GPT-2's byte-level BPE writes for bytes: themselves if they can be seen, else from 256 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + place): byte for place, byte in enumerate(others)}


ALPHABET = byte_alphabet()


class Vocabulary:
    """The bytes of tokens as they stand in the middle of a text: joined and decoded they are the text.

    `decoder` is that of tokenizer.json.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, decoder: dict[str, Any] | None) -> None:
        kinds = decoder_kinds(decoder)
        self._tokenizer = tokenizer
        self._of = self._byte_level if "ByteLevel" in kinds else self._piece
        self._falls_back = "ByteFallback" in kinds
        self._known: dict[int, bytes] = {}
        self._before = tokenizer.encode("a", add_special_tokens=False).ids
        self._offset = len(tokenizer.decode(self._before))

    def __getitem__(self, token: int) -> bytes:
        """b"" for a token that does not exist: models may have more than their tokenizer."""
        known = self._known.get(token)
        if known is None:
            text = self._tokenizer.id_to_token(token)
            known = self._known[token] = b"" if text is None else self._of(token, text)
        return known

    def _byte_level(self, token: int, text: str) -> bytes:
        """Added tokens are plain text, which shows where it has characters that stand for no byte."""
        if all(letter in ALPHABET for letter in text):
            return bytes(ALPHABET[letter] for letter in text)
        return text.encode()

    def _piece(self, token: int, text: str) -> bytes:
        """Every other decoder is asked what the token adds to a text."""
        if self._falls_back and (byte := BYTE.fullmatch(text)):
            return bytes([int(byte[1], 16)])
        return self._tokenizer.decode([*self._before, token], skip_special_tokens=False)[self._offset :].encode()


def decoder_kinds(decoder: dict[str, Any] | None) -> set[str]:
    if decoder is None:
        return set()
    return {decoder["type"]}.union(*(decoder_kinds(inner) for inner in decoder.get("decoders", [])))
