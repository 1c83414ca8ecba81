"""Finds the network class of a checkpoint in Hugging Face's layout, before its weights are read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from msx_core.tokenizer_files import read_object
from msx_core.unknown_families import unknown_family
from msx_llm.embedding.config import ENCODERS, EncoderConfig, encoder_config
from msx_llm.models.config import DecoderConfig
from msx_llm.models.registry import FAMILIES, read_config
from msx_llm.models.text_part import TEXT_PARTS
from msx_sdk.errors import HandlerLoadError


@dataclass(frozen=True)
class EncoderFamily:
    model_type: str
    hidden: int
    context: int
    """The most tokens of a text that the network supports."""
    vocab_size: int
    dtype: str
    load: Callable[[int], Any]
    """Reads the weights, for texts of at most so many tokens. Returns a cell: ids [B, P], mask [B, 1, 1, P] additive →
    states [B, P, hidden]. Raises HandlerLoadError for weights that do not fit config.json."""


def find_family(folder: Path, target: str) -> EncoderFamily:
    """Finds the family by `model_type` of config.json. Raises HandlerLoadError for an unknown one."""
    raw = read_object(folder, "config.json")
    if not raw:
        raise HandlerLoadError("config.json is missing; pack the model's whole folder with --extra-files")
    kind, dtype = raw.get("model_type"), _dtype(raw, target)
    if kind in ENCODERS:
        return _encoder(folder, encoder_config(raw), dtype)
    if kind in FAMILIES or kind in TEXT_PARTS:
        return _decoder(folder, read_config(folder), dtype)
    raise HandlerLoadError(unknown_family(str(kind), (*ENCODERS, *FAMILIES, *TEXT_PARTS)))


def _encoder(folder: Path, config: EncoderConfig, dtype: str) -> EncoderFamily:
    load = partial(_load_encoder, folder, config, dtype)
    return EncoderFamily(config.model_type, config.hidden_size, config.context, config.vocab_size, dtype, load)


def _decoder(folder: Path, config: DecoderConfig, dtype: str) -> EncoderFamily:
    """A decoder whose head, if the file has one, is not loaded: nothing is generated."""
    load = partial(_load_decoder, folder, msgspec.structs.replace(config, tied=True, logits_factor=1.0), dtype)
    context = config.native if config.stretches else config.context
    return EncoderFamily(config.model_type, config.hidden_size, context, config.vocab_size, dtype, load)


def _load_encoder(folder: Path, config: EncoderConfig, dtype: str, longest: int) -> Any:
    from msx_llm.embedding.encoder import load_encoder

    return load_encoder(folder, config, dtype)


def _load_decoder(folder: Path, config: DecoderConfig, dtype: str, longest: int) -> Any:
    from msx_llm.embedding.decoder import load_decoder

    return load_decoder(folder, config, dtype, longest)


def _dtype(raw: dict[str, Any], target: str) -> str:
    """float32 on a CPU: half precision is slow there, or not supported."""
    named = raw.get("dtype") or raw.get("torch_dtype")
    return named if target != "CPU" and named in ("float16", "bfloat16") else "float32"
