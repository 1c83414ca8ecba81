"""The weights of the small language model of `nets`, without MindSpore."""

from typing import Any

import numpy as np

VOCABULARY, WIDTH, HIDDEN, BLOCKS = 37, 16, 32, 3


def tensors() -> dict[str, Any]:
    """The weights by name, [out, in] as Hugging Face's."""
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (VOCABULARY, WIDTH)}
    for n in range(BLOCKS):
        shapes |= {f"layers.{n}.norm.weight": (WIDTH,), f"layers.{n}.norm.bias": (WIDTH,)}
        shapes |= {f"layers.{n}.up.weight": (HIDDEN, WIDTH), f"layers.{n}.up.bias": (HIDDEN,)}
        shapes |= {f"layers.{n}.down.weight": (WIDTH, HIDDEN), f"layers.{n}.down.bias": (WIDTH,)}
    return {name: random.standard_normal(shape).astype(np.float32) * 0.3 for name, shape in shapes.items()}
