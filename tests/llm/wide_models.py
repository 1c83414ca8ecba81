"""Models of every family whose heads are as wide as NPUs want them, with random weights.

The reference is the runner of a CPU, which the goldens hold against transformers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.llm.runners import GOLDENS

HEAD_SIZE, WINDOW = 16, 12
CAP = 100.0
"""A bound of logits above the largest ones, of which roundings are a share."""
LOUD = 300.0
"""Activations above 256 overflow in float16 where they are squared."""


def make_wide(golden: str, folder: Path, loud: bool = False, **changes: Any) -> Path:
    """A model folder with the `config.json` of a golden, but for the size of a head."""
    from safetensors.numpy import save_file

    from msx_llm.models.registry import read_config
    from msx_llm.models.weights import shapes

    folder.mkdir(parents=True)
    given = json.loads((GOLDENS / golden / "config.json").read_text())
    sizes = {"head_dim": HEAD_SIZE, "hidden_size": given["num_attention_heads"] * HEAD_SIZE}
    for own in (given.get("per_layer_config") or {}).values():
        own["head_dim"] = 2 * HEAD_SIZE
    if given.get("final_logit_softcapping"):
        sizes["final_logit_softcapping"] = CAP
    if given.get("sliding_window"):
        sizes["sliding_window"] = WINDOW
    if longrope := (given.get("rope_parameters") or {}).get("short_factor"):
        factors = [1 + number / 4 for number in range(len(longrope) * HEAD_SIZE * 4 // given["hidden_size"])]
        given["rope_parameters"] |= {"short_factor": factors, "long_factor": [3 * factor for factor in factors]}
    (folder / "config.json").write_text(json.dumps({**given, **sizes, **changes}))
    random = np.random.default_rng(len(golden))
    tensors = {name: _random(name, shape, random) for name, shape in shapes(read_config(folder), "model.")}
    if loud:
        tensors["model.embed_tokens.weight"][:, 0] = LOUD
    save_file(tensors, folder / "model.safetensors")
    return folder


def _random(name: str, shape: tuple[int, ...], random: np.random.Generator) -> Any:
    noise = random.standard_normal(shape, np.float32)
    if name.endswith("router.scale"):
        return 16 + noise  # as large as other routers' logits: near ties are rounded to another expert
    if "norm" in name or "scal" in name:
        return 1 + noise / 10
    return noise if "embed" in name else noise / np.float32(np.sqrt(shape[-1]))
