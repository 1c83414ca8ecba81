"""Blocks of each type that is read from GGUF files, of random bytes, and the numbers that the package `gguf`, of the
format's own authors, makes of them.

    python -m venv gguf && gguf/bin/pip install 'gguf==0.17.1' && gguf/bin/python tests/goldens/make_gguf.py

Writes tests/goldens/gguf.npz. The package is no dependency of the project.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

gguf: Any = import_module("gguf")

FILE = Path(__file__).parent / "gguf.npz"
KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
SCALES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2)}
"""Places of the float16 in a block; of Q6_K the last two bytes."""


def blocks(kind: str, random: np.random.Generator) -> Any:
    """uint8 [2, 3 blocks of bytes]"""
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    data = random.integers(0, 256, (2, 3, size), np.uint8)
    for place in SCALES.get(kind, (size - 2,)):
        scale = (random.standard_normal((2, 3, 1)) / 8).astype("<f2")
        data[..., place : place + 2] = scale.view(np.uint8)
    data[0, 0, SCALES.get(kind, (size - 2,))[0] :][:2] = 0  # a scale of 0
    return data.reshape(2, -1)


def main() -> None:
    random, found = np.random.default_rng(0), dict[str, Any]()
    for kind in KINDS:
        data = blocks(kind, random)
        found[kind] = data
        found[f"{kind}_numbers"] = gguf.dequantize(data, gguf.GGMLQuantizationType[kind])
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    main()
