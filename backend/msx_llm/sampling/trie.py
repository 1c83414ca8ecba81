"""A tokenizer in llguidance's form: the bytes of every token in a trie."""

import json
from collections.abc import Iterable
from typing import Any

from llguidance import LLTokenizer

BYTES_OF_PIECES = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}
"""A decoder that llguidance can read, with the meaning of `Metaspace` for single tokens."""


def trie_tokenizer(tokenizer: str, eos: Iterable[int], vocab_size: int) -> LLTokenizer:
    """Reads a tokenizer.json, with at least `vocab_size` tokens. Raises ValueError if llguidance cannot read it."""
    ends, spec = sorted(eos), json.loads(tokenizer)
    if not ends:
        raise ValueError("the model names no token that ends a text (eos_token_id)")
    if any(decoder["type"] == "Metaspace" for decoder in _decoders(spec)):
        spec["decoder"] = BYTES_OF_PIECES
    return LLTokenizer(json.dumps(spec), n_vocab=max(vocab_size, _size(spec)), eos_token=ends)


def _decoders(spec: dict[str, Any]) -> list[dict[str, Any]]:
    decoder = spec.get("decoder") or {"type": None}
    decoders: list[dict[str, Any]] = decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]
    return decoders


def _size(spec: dict[str, Any]) -> int:
    vocab = spec["model"]["vocab"]  # Unigram has a list, BPE a table
    ids = range(len(vocab)) if isinstance(vocab, list) else vocab.values()
    last: int = max([*ids, *(token["id"] for token in spec.get("added_tokens", []))])
    return last + 1
