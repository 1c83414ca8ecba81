from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from msx_llm.text.vocabulary import ALPHABET, Vocabulary
from tests.llm.tokenizers_of_tests import EXAMPLE, byte_level, pieces, word_pieces

TOKENIZERS = {
    "bytes": byte_level(),
    "pieces": pieces(),
    "newer pieces": pieces(legacy=False),
    "words": word_pieces(),
    "example": Tokenizer.from_file(str(EXAMPLE / "tokenizer.json")),
}


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer, json.loads(tokenizer.to_str())["decoder"])


def token_bytes(kind: str, text: str) -> bytes:
    token = TOKENIZERS[kind].token_to_id(text)
    assert token is not None
    return vocabulary_of(TOKENIZERS[kind])[token]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_what_a_token_adds_to_a_text(kind: str) -> None:
    tokenizer, vocabulary = TOKENIZERS[kind], vocabulary_of(TOKENIZERS[kind])
    before = tokenizer.encode("a" if kind != "words" else "the", add_special_tokens=False).ids
    start = tokenizer.decode(before)
    for token in range(tokenizer.get_vocab_size()):
        text = vocabulary[token].decode(errors="replace")
        if "\ufffd" not in text:
            assert tokenizer.decode([*before, token], skip_special_tokens=False) == start + text


@pytest.mark.parametrize(
    ("kind", "token", "expected"),
    [
        ("bytes", "Ġa", b" a"),
        ("bytes", "ðŁ", b"\xf0\x9f"),
        ("bytes", "<|end|>", b"<|end|>"),
        ("pieces", "▁a", b" a"),
        ("pieces", "▁", b" "),
        ("pieces", "<0xE2>", b"\xe2"),
        ("pieces", "</s>", b"</s>"),
        ("newer pieces", "▁yes", b" yes"),
        ("newer pieces", "<0x0A>", b"\n"),
        ("words", "the", b" the"),
        ("words", "##ing", b"ing"),
    ],
)
def test_of_each_kind(kind: str, token: str, expected: bytes) -> None:
    assert token_bytes(kind, token) == expected


def test_a_token_that_does_not_exist() -> None:
    assert vocabulary_of(byte_level())[5_000] == b""


def test_all_bytes_have_a_character() -> None:
    assert ALPHABET.keys() == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(ALPHABET.values()) == list(range(256))
