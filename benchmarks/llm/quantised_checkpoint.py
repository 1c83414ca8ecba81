"""A Llama with random weights as quantised files have them; its embedding is its head, too, and stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.llm.checkpoint import DEVIATION, Checkpoint

GROUP = 128
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
W8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": INT8, "input_activations": None}},
    "ignore": ["lm_head"],
}
W4 = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
CONFIGS: Mapping[str, dict[str, Any]] = {"float32": {}, "W8A16": W8, "W4A16": W4}


@dataclass(frozen=True)
class QuantisedCheckpoint:
    plain: Checkpoint
    kind: str
    """Name in `CONFIGS`."""

    def write(self, folder: Path) -> None:
        """Writes config.json and the weights into the folder, which must exist."""
        import numpy as np  # the scripts beside this one do without it
        from safetensors.numpy import save_file

        given = CONFIGS[self.kind]
        config = self.plain.config() | {"tie_word_embeddings": True}
        (folder / "config.json").write_text(json.dumps(config | ({"quantization_config": given} if given else {})))
        random, tensors = np.random.default_rng(0), dict[str, Any]()
        for name, shape in self.plain.shapes().items():
            if len(shape) == 1:
                tensors[name] = np.ones(shape, np.float32)
            elif name.endswith("_proj.weight") and given:
                layer = name.removesuffix(".weight")
                tensors |= {f"{layer}.{kind}": it for kind, it in LAYERS[self.kind](random, *shape).items()}
            elif name != "lm_head.weight":
                tensors[name] = random.standard_normal(shape, np.float32) * np.float32(DEVIATION)
        save_file(tensors, folder / "model.safetensors")


def _bytes(random: Any, outputs: int, inputs: int) -> dict[str, Any]:
    codes = random.integers(-127, 128, (outputs, inputs), "int8")
    return {"weight": codes, "weight_scale": random.uniform(0, DEVIATION / 64, (outputs, 1)).astype("float32")}


def _nibbles(random: Any, outputs: int, inputs: int) -> dict[str, Any]:
    def words(rows: int) -> Any:
        return random.integers(-(1 << 31), 1 << 31, (rows, outputs // 8)).astype("int32")

    groups = inputs // GROUP
    scales = random.uniform(0, DEVIATION / 4, (groups, outputs)).astype("float16")
    return {"qweight": words(inputs), "qzeros": words(groups), "scales": scales}


LAYERS: Mapping[str, Callable[[Any, int, int], dict[str, Any]]] = {"W8A16": _bytes, "W4A16": _nibbles}
