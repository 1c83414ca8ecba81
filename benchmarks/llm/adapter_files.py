"""Adapters with random weights for a checkpoint, as PEFT saves them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.llm.checkpoint import Checkpoint

CONFIG = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "target_modules": "all-linear"}


def write_adapters(checkpoint: Checkpoint, folder: Path, count: int, rank: int) -> None:
    """`folder` gets one folder for each, of all linear layers."""
    from safetensors.numpy import save_file

    for number in range(count):
        own = folder / f"adapter-{number}"
        own.mkdir(parents=True)
        save_file(dict(_tensors(checkpoint, rank, number)), own / "adapter_model.safetensors")
        (own / "adapter_config.json").write_text(json.dumps({**CONFIG, "r": rank, "lora_alpha": rank}))


def _tensors(checkpoint: Checkpoint, rank: int, seed: int) -> Iterator[tuple[str, Any]]:
    import numpy as np

    random = np.random.default_rng(seed)
    for name, shape in checkpoint.shapes().items():
        if "_proj" not in name:
            continue
        outputs, inputs = shape
        layer = f"base_model.model.{name.removesuffix('.weight')}"
        for part, size in {"A": (rank, inputs), "B": (outputs, rank)}.items():
            yield f"{layer}.lora_{part}.weight", random.standard_normal(size, np.float32) * np.float32(0.02)
