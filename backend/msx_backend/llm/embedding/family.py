"""Which network a checkpoint in Hugging Face's layout is, before its weights are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from msx_backend.llm.embedding.config import ENCODERS, EncoderConfig, encoder_config
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.registry import FAMILIES, read_config
from msx_backend.llm.text.files import read_object
from msx_sdk.errors import HandlerLoadError


@dataclass(frozen=True)
class EncoderFamily:
    model_type: str
    hidden: int
    context: int
    """Tokens of the longest text that the network was made for."""
    vocab_size: int
    dtype: str
    load: Callable[[int], Any]
    """Reads the weights, for texts of at most so many tokens. Returns a cell: ids [B, P], mask [B, 1, 1, P] additive →
    states [B, P, hidden]. Raises HandlerLoadError for weights that do not fit config.json."""


def find_family(folder: Path, target: str) -> EncoderFamily:
    """By `model_type` of config.json. Raises HandlerLoadError for one that is not known."""
    raw = read_object(folder, "config.json")
    if not raw:
        raise HandlerLoadError("config.json is missing; pack the model's whole folder with --extra-files")
    kind, dtype = raw.get("model_type"), _dtype(raw, target)
    if kind in ENCODERS:
        return _encoder(folder, encoder_config(raw), dtype)
    if kind in FAMILIES:
        return _decoder(folder, read_config(folder), dtype)
    known = ", ".join([*ENCODERS, *FAMILIES])
    raise HandlerLoadError(f"config.json, model_type: {kind!r} is unknown; known are {known}")


def _encoder(folder: Path, config: EncoderConfig, dtype: str) -> EncoderFamily:
    load = partial(_load_encoder, folder, config, dtype)
    return EncoderFamily(config.model_type, config.hidden_size, config.context, config.vocab_size, dtype, load)


def _decoder(folder: Path, config: DecoderConfig, dtype: str) -> EncoderFamily:
    """Nothing is generated: whatever the file has as a head stays there."""
    load = partial(_load_decoder, folder, msgspec.structs.replace(config, tied=True), dtype)
    context = config.native if config.stretches else config.context
    return EncoderFamily(config.model_type, config.hidden_size, context, config.vocab_size, dtype, load)


def _load_encoder(folder: Path, config: EncoderConfig, dtype: str, longest: int) -> Any:
    from msx_backend.llm.embedding.encoder import load_encoder

    return load_encoder(folder, config, dtype)


def _load_decoder(folder: Path, config: DecoderConfig, dtype: str, longest: int) -> Any:
    from msx_backend.llm.embedding.decoder import load_decoder

    return load_decoder(folder, config, dtype, longest)


def _dtype(raw: dict[str, Any], target: str) -> str:
    """On a CPU float32: half precision is slow there, or missing."""
    named = raw.get("dtype") or raw.get("torch_dtype")
    return named if target != "CPU" and named in ("float16", "bfloat16") else "float32"
