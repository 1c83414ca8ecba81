"""`tokenizer.json` of the tokenizer in a file: byte-level BPE (`gpt2`), or SentencePiece's (`llama`)."""

from collections.abc import Iterator
from typing import Any

from msx_archiver.gguf.merges import scored, vocabulary, written
from msx_archiver.gguf.metadata import Metadata
from msx_archiver.gguf.pre_tokenizers import KNOWN, pre_tokenizer
from msx_core.gguf.errors import GgufError

ROOT = "tokenizer.ggml."
MODEL, PRE, TOKENS, TYPES = f"{ROOT}model", f"{ROOT}pre", f"{ROOT}tokens", f"{ROOT}token_type"
UNKNOWN, CONTROL, OF_USERS = 2, 3, 4
"""Types of tokens that are looked for in a text before it is divided."""
SPACE = "▁"
_NONE = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def tokenizer_of(metadata: Metadata) -> dict[str, Any]:
    """Raises GgufError for a kind that is not known, and for one that is not whole."""
    kind = metadata.text(MODEL)
    if kind not in ("gpt2", "llama"):
        raise GgufError(
            f"{MODEL}: {kind[:40]} is not read; gpt2 and llama are: put the tokenizer.json of the model's hub beside "
            "the file, or give it by --extra-files"
        )
    known = vocabulary(metadata.list(TOKENS, str))
    parts = _byte_level(metadata, known) if kind == "gpt2" else _sentence_piece(metadata, known)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [*_added(metadata)], **parts}


def begins(metadata: Metadata) -> bool:
    """Whether a token is put before each text, where the file does not say."""
    words = KNOWN.get(metadata.text(PRE, ""))
    return metadata.text(MODEL) == "llama" or (words is not None and words.begins)


def special(metadata: Metadata) -> Iterator[tuple[int, str]]:
    """Tokens that are no part of what a model says."""
    tokens = metadata.list(TOKENS, str)
    for number, kind in enumerate(_types(metadata, len(tokens))):
        if kind in (UNKNOWN, CONTROL):
            yield number, tokens[number]


def _added(metadata: Metadata) -> Iterator[dict[str, Any]]:
    tokens = metadata.list(TOKENS, str)
    for number, kind in enumerate(_types(metadata, len(tokens))):
        if kind in (UNKNOWN, CONTROL, OF_USERS) and (text := tokens[number]):
            yield {"id": number, "content": text, **_NONE, "special": kind != OF_USERS}


def _types(metadata: Metadata, tokens: int) -> list[int]:
    return metadata.list(TYPES, int, tokens) if TYPES in metadata else []


def _byte_level(metadata: Metadata, known: dict[str, int]) -> dict[str, Any]:
    words = pre_tokenizer(metadata.text(PRE))
    merges = [*written(metadata.list(f"{ROOT}merges", str), known)]
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": words.normalizer,
        "pre_tokenizer": words.part,
        "post_processor": level | {"trim_offsets": False},
        "decoder": level,
        "model": _model(known, merges, ignore_merges=words.whole),
    }


def _sentence_piece(metadata: Metadata, known: dict[str, int]) -> dict[str, Any]:
    merges = scored(known, metadata.list(f"{ROOT}scores", float, len(known)))
    unknown = metadata.token(f"{ROOT}unknown_token_id", len(known))
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    before = metadata.flag(f"{ROOT}add_space_prefix", True)
    first = [{"type": "Prepend", "prepend": SPACE}] if before else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if before else []
    back = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    bytes_ = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    name = None if unknown is None else metadata.list(TOKENS, str)[unknown]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*first, spaces]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [back, *bytes_, *strip]},
        "model": _model(known, merges, unk_token=name, fuse_unk=True, byte_fallback=True),
    }


def _model(known: dict[str, int], merges: list[tuple[str, str]], **own: Any) -> dict[str, Any]:
    common = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    more = {"fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **own}
    return {"type": "BPE", **common, **more, "vocab": known, "merges": merges}
