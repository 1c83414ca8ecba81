"""Random models in GGUF files, and the same in safetensors: the numbers that the blocks stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from msx_archiver.gguf.packed import written_files
from msx_core.gguf.blocks import FORMS
from msx_core.gguf.kinds import BY_NAME, KINDS
from tests.gguf_files import Stored, write
from tests.gguf_models import byte_level, config_of, network, stored_name

Array = np.ndarray[Any, Any]
NUMBERS = {kind.name: number for number, kind in KINDS.items()}
SCALES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2)}
"""Places of the float16 in a block; of Q6_K the last two bytes."""
LEAST = {"Q4_1": -7.5, "Q5_1": -15.5, "Q4_K": 7.5, "Q5_K": 15.5}
"""The second one, in scales: then numbers are as often above 0 as below."""
WIDTH = {"Q4_0": 4.6, "Q4_1": 4.6, "Q5_0": 9.2, "Q5_1": 9.2, "Q8_0": 74, "Q4_K": 170, "Q5_K": 340, "Q6_K": 1350}
"""The standard deviation of a block's numbers, in scales."""


def blocks(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> bytes:
    own = BY_NAME[kind]
    data = random.integers(0, 256, (shape[0], shape[1] // own.values, own.size), np.uint8)
    places = SCALES.get(kind, (own.size - 2,))
    scales = (1 + random.random((*data.shape[:2], 1))) / WIDTH[kind] / np.sqrt(shape[1])
    for place, factor in zip(places, (1.0, LEAST.get(kind, 1.0)), strict=False):
        data[..., place : place + 2] = (scales * factor).astype("<f2").view(np.uint8)
    return data.tobytes()


def numbers(kind: str, shape: tuple[int, ...], data: bytes) -> Array:
    """Decode them by what tests/core/gguf holds against the format's own authors."""
    parts = np.frombuffer(data, np.uint8).reshape(shape[0], -1, BY_NAME[kind].size)
    return FORMS[kind].decode(parts).numbers.astype(np.float32)


def turned_back(weight: Array, heads: int) -> Array:
    """Rows in the hub's order: the converter puts the halves of a head between each other (convert_hf_to_gguf.py)."""
    parts = weight.reshape(heads, -1, 2, *weight.shape[1:])
    return np.swapaxes(parts, 1, 2).reshape(weight.shape)


def turned(weight: Array, heads: int) -> Array:
    parts = weight.reshape(heads, 2, -1, *weight.shape[1:])
    return np.swapaxes(parts, 1, 2).reshape(weight.shape)


def write_gguf(plain: Path, kind: str, types: dict[str, str], folder: Path) -> tuple[Path, Path]:
    """-> a model's folder with a GGUF file, and one of its numbers. `types`: parts of names, and the types of weights
    that have them; others are F32."""
    from safetensors.numpy import load_file, save_file

    config, random = config_of(plain), np.random.default_rng(1)
    stored, meant = dict[str, Stored](), dict[str, Array]()
    for name, weight in load_file(plain / "model.safetensors").items():
        found = next((it for part, it in types.items() if part in name and weight.ndim == 2), "F32")
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
        own = heads.get(name.split(".")[-2]) if kind == "llama" else None
        if found == "F32":
            data = (weight if own is None else turned(weight, own)).tobytes()
            meant[name] = weight
        else:
            data = blocks(found, weight.shape, random)
            value = numbers(found, weight.shape, data)
            meant[name] = np.ascontiguousarray(value if own is None else turned_back(value, own))
        stored[stored_name(name)] = Stored(weight.shape, NUMBERS[found], data)
    made, wanted = folder / "gguf", folder / "numbers"
    for path in (made, wanted):
        path.mkdir(parents=True)
    file = write(made / "model.gguf", network(kind, _whole(config)) | _tokens(config["vocab_size"]), stored)
    written_files(file, made, {})
    (wanted / "config.json").write_text(json.dumps(config))
    save_file(meant, wanted / "model.safetensors")
    return made, wanted


def _whole(config: dict[str, Any]) -> dict[str, Any]:
    rope = config.get("rope_parameters") or {}
    return {"rope_theta": rope.get("rope_theta", 10_000.0), **config}


def _tokens(count: int) -> dict[str, Any]:
    """A tokenizer with fewer tokens than its kind needs: nobody tokenizes."""
    own = {"tokens": [f"t{number}" for number in range(count)], "token_type": [1] * count, "merges": []}
    return byte_level() | {f"tokenizer.ggml.{key}": value for key, value in own.items()}
