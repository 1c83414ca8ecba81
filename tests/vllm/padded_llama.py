"""examples/llama with heads of 32 numbers in place of 24, which vLLM on CPUs cannot take: it says the same texts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.e2e.llama import DATA, EXAMPLE

Array = np.ndarray[Any, Any]
WIDE = 32


def make_padded_llama(folder: Path, **sampling: Any) -> Path:
    """Write the model's files to `folder`, which must not exist. `sampling`: members of its generation_config.json."""
    folder.mkdir(parents=True)
    for name in DATA:
        shutil.copy(EXAMPLE / name, folder)
    config = json.loads((EXAMPLE / "config.json").read_text())
    narrow = config["head_dim"]
    # Rotary position i turns by theta ** (-2 i / head_dim): the same angles for the positions that both have.
    config |= {"head_dim": WIDE, "rope_theta": config["rope_theta"] ** (WIDE / narrow), "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config))
    generation = json.loads((EXAMPLE / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(generation | sampling))
    tensors = {name: _padded(name, it, narrow) for name, it in load_file(EXAMPLE / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def _padded(name: str, weight: Array, narrow: int) -> Array:
    """Zeros behind the numbers of each head: behind each half of those that rotary positions turn in pairs."""
    kind = name.removesuffix(".weight").rpartition(".")[2]
    weight = weight.astype(np.float32)
    if kind in ("q_proj", "k_proj"):
        scale = (WIDE / narrow) ** 0.25  # attention divides by the root of the head's size
        return _rows(weight * np.float32(scale), narrow // 2, WIDE // 2)
    if kind == "v_proj":
        return _rows(weight, narrow, WIDE)
    if kind == "o_proj":
        return np.ascontiguousarray(_rows(weight.T, narrow, WIDE).T)
    return weight


def _rows(weight: Array, narrow: int, wide: int) -> Array:
    """Zeros behind each `narrow` rows, so that they are `wide`."""
    parts = weight.reshape(-1, narrow, weight.shape[1])
    return np.pad(parts, ((0, 0), (0, wide - narrow), (0, 0))).reshape(-1, weight.shape[1])
