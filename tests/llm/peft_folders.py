"""Adapters as PEFT writes them, with random weights, and models that have them merged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

PREFIX = "base_model.model."


def make_adapter(model: Path, folder: Path, seed: int, rank: int = 4, targets: Any = None, **changes: Any) -> Path:
    """For all linear layers of a model's layers, or those of these names."""
    from safetensors.numpy import load_file, save_file

    random, tensors = np.random.default_rng(seed), {}
    for name, weight in load_file(model / "model.safetensors").items():
        layer = name.removesuffix(".weight")
        if "_proj" not in name or name == layer or (targets and layer.rpartition(".")[2] not in targets):
            continue
        outputs, inputs = weight.shape
        for part, shape in {"A": (rank, inputs), "B": (outputs, rank)}.items():
            noise = random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1]))
            tensors[f"{PREFIX}{layer}.lora_{part}.weight"] = noise
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 2.0, "target_modules": "all-linear", **changes}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def merged(model: Path, adapter: Path, folder: Path, scale: float) -> Path:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(model, folder)
    tensors, changes = load_file(model / "model.safetensors"), load_file(adapter / "adapter_model.safetensors")
    for name in changes:
        if name.endswith("lora_A.weight"):
            layer = name.removeprefix(PREFIX).removesuffix(".lora_A.weight")
            tensors[f"{layer}.weight"] += scale * (changes[name.replace("lora_A", "lora_B")] @ changes[name])
    save_file(tensors, folder / "model.safetensors")
    return folder


def room(places: int = 2) -> Any:
    from msx_llm.adapters.weights import ATTENTION, MLP
    from msx_llm.models.adapter_shape import AdapterShape

    return AdapterShape(places, 8, frozenset(ATTENTION + MLP))
