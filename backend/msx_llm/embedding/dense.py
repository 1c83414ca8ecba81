"""The module `Dense` of sentence-transformers: a layer after the pooling."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msx_core.mindspore.weights import Weights
from msx_core.tokenizer_files import read_object
from msx_llm.embedding.pooling import Array
from msx_sdk.errors import HandlerLoadError

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Tanh": np.tanh,
    "Identity": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0),
}
"""Activations by the last name of a torch class, such as `torch.nn.modules.activation.Tanh`."""


@dataclass(frozen=True)
class Dense:
    """weight [in, out]"""

    weight: Array
    bias: Array
    activation: Callable[[Array], Array]

    @property
    def size(self) -> int:
        return int(self.weight.shape[1])

    def __call__(self, vectors: Array) -> Array:
        return self.activation(vectors @ self.weight + self.bias)


def read_dense(folder: Path) -> Dense:
    """Raises HandlerLoadError for an unknown activation, or missing weights."""
    name = str(read_object(folder, "config.json").get("activation_function", "Tanh")).rpartition(".")[2]
    if name not in ACTIVATIONS:
        raise HandlerLoadError(
            f"{folder.name}/config.json: activation_function {name} is not one of {', '.join(ACTIVATIONS)}"
        )
    with Weights(folder) as weights:
        weight = weights.read("linear.weight").astype(np.float32).T
        bias = weights.read("linear.bias") if "linear.bias" in weights else np.zeros(weight.shape[1])
    return Dense(np.ascontiguousarray(weight), bias.astype(np.float32), ACTIVATIONS[name])
