"""The small files of Hugging Face's layout that a GGUF file stands for."""

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from msx_archiver.errors import PackError
from msx_archiver.gguf.metadata import Metadata
from msx_archiver.gguf.network import config_of, unknown_keys
from msx_archiver.gguf.tokenizer import ROOT, TOKENS, begins, special, tokenizer_of
from msx_core.gguf.errors import GgufError
from msx_core.gguf.header import GgufHeader, read_header

CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
GENERATION = "generation_config.json"
TEMPLATE, TEMPLATES = "tokenizer.chat_template", "tokenizer.chat_templates"
NAMED = {
    "bos_token": "bos",
    "eos_token": "eos",
    "unk_token": "unknown",
    "pad_token": "padding",
    "sep_token": "seperator",
}
"""Members of tokenizer_config.json, and the metadata's names of them."""
ENDS = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>"}
"""Tokens that end an answer wherever a model has them."""
SAMPLING = {"temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p"}


def made_files(path: Path, given: Collection[str] = ()) -> tuple[dict[str, bytes], list[str]]:
    """Files by name, but for the `given` ones, which are there already; and sentences of warning. Raises PackError for
    what cannot be served, OSError."""
    if CONFIG in given:
        raise PackError(f"{path} has its configuration in it: leave {CONFIG} out.")
    try:
        header = read_header(path)
        files = {name: _json(make(path, header)) for name, make in _MAKERS.items() if name not in given}
    except GgufError as error:
        raise PackError(f"{path} cannot be served: {error}.") from None
    return files, [f"{path}: {key} is not known, and has no effect." for key in unknown_keys(header)]


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=None if "model" in value else 2).encode()


def _tokenizer(path: Path, header: GgufHeader) -> dict[str, Any]:
    return tokenizer_of(Metadata(header.metadata))


def _tokenizer_config(path: Path, header: GgufHeader) -> dict[str, Any]:
    metadata = Metadata(header.metadata)
    tokens = metadata.list(TOKENS, str)
    numbers = {own: metadata.token(f"{ROOT}{name}_token_id", len(tokens)) for own, name in NAMED.items()}
    texts = {own: tokens[number] for own, number in numbers.items() if number is not None}
    first = metadata.flag(f"{ROOT}add_bos_token", begins(metadata)) and "bos_token" in texts
    last = metadata.flag(f"{ROOT}add_eos_token", False) and "eos_token" in texts
    own = {"add_bos_token": first, "add_eos_token": last}
    return {**texts, **own, **({"chat_template": chat} if (chat := _chat(metadata)) else {})}


def _chat(metadata: Metadata) -> Any:
    """A text, or a list of named ones."""
    if TEMPLATES not in metadata:
        return metadata.text(TEMPLATE, "")
    names = metadata.list(TEMPLATES, str)
    found = [("default", metadata.text(TEMPLATE, ""))]
    found += [(name, metadata.text(f"{TEMPLATE}.{name}")) for name in names if name != "default"]
    return [{"name": name, "template": text} for name, text in found if text]


def _generation(path: Path, header: GgufHeader) -> dict[str, Any]:
    metadata = Metadata(header.metadata)
    tokens = len(metadata.list(TOKENS, str))
    sampled = {own: metadata.number(key) for name, own in SAMPLING.items() if (key := _sampled(name)) in metadata}
    return {"eos_token_id": sorted({*_ends(metadata, tokens)}), **sampled}


def _sampled(name: str) -> str:
    return f"general.sampling.{name}"


def _ends(metadata: Metadata, tokens: int) -> Iterator[int]:
    """All tokens that end a text or a turn."""
    for name in ("eos", "eot", "eom"):
        if (number := metadata.token(f"{ROOT}{name}_token_id", tokens)) is not None:
            yield number
    yield from (number for number, text in special(metadata) if text in ENDS)


_MAKERS: dict[str, Callable[[Path, GgufHeader], dict[str, Any]]] = {
    CONFIG: config_of,
    TOKENIZER: _tokenizer,
    TOKENIZER_CONFIG: _tokenizer_config,
    GENERATION: _generation,
}
