"""Loads tokenizer.json, with the tokens that only tokenizer_config.json has."""

import os
from pathlib import Path
from typing import Any

import tokenizers

from msx_core.json_text import json_text
from msx_sdk.errors import HandlerLoadError

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


PARALLELISM = "TOKENIZERS_PARALLELISM"
"""The library's variable. Unless it is set, a batch of texts, of which there is one here, starts a thread for each
processor of the machine."""


def load_tokenizer(folder: Path, config: dict[str, Any]) -> tokenizers.Tokenizer:
    """Raises HandlerLoadError."""
    os.environ.setdefault(PARALLELISM, "false")
    tokenizer = _read(folder / "tokenizer.json")
    for id, token in sorted((int(id), token) for id, token in config.get("added_tokens_decoder", {}).items()):
        _add(tokenizer, id, token)
    return tokenizer


def _read(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise HandlerLoadError(
            "tokenizer.json is missing: AutoTokenizer.from_pretrained(…).save_pretrained(…) of transformers makes one"
        )
    try:
        return tokenizers.Tokenizer.from_str(json_text(path.read_bytes()))
    except Exception as error:  # tokenizers raises nothing more precise
        raise HandlerLoadError(f"tokenizer.json cannot be read: {error}") from None


def _add(tokenizer: tokenizers.Tokenizer, id: int, token: dict[str, Any]) -> None:
    text = token["content"]
    if tokenizer.token_to_id(text) is None:
        added = tokenizers.AddedToken(text, **{flag: token[flag] for flag in FLAGS if flag in token})
        tokenizer.add_tokens([added])
    if tokenizer.token_to_id(text) != id:
        raise HandlerLoadError(
            f"tokenizer_config.json says that token {text!r} is {id}, tokenizer.json that it is "
            f"{tokenizer.token_to_id(text)}"
        )
