"""The head of a model for sequence classification: two layers on the state of the first token."""

from pathlib import Path
from typing import Any

import numpy as np

from msx_core.mindspore.weights import Weights
from msx_llm.embedding.dense import ACTIVATIONS, Dense
from msx_sdk.errors import HandlerLoadError

HEADS: dict[str, tuple[tuple[str, str], ...]] = {
    "bert": (("bert.pooler.dense", "Tanh"), ("classifier", "Identity")),
    "roberta": (("classifier.dense", "Tanh"), ("classifier.out_proj", "Identity")),
    "xlm-roberta": (("classifier.dense", "Tanh"), ("classifier.out_proj", "Identity")),
    "camembert": (("classifier.dense", "Tanh"), ("classifier.out_proj", "Identity")),
    "distilbert": (("pre_classifier", "ReLU"), ("classifier", "Identity")),
}
"""model_type to the layers of its head, each with what is applied to its result."""


def read_head(folder: Path, model_type: str, hidden: int) -> tuple[Dense, ...]:
    """Raises HandlerLoadError for a checkpoint without a head, or with one of other sizes."""
    with Weights(folder) as weights:
        layers, size = [], hidden
        for name, activation in HEADS[model_type]:
            weight = _read(weights, f"{name}.weight", 2)
            if weight.shape[1] != size:
                raise HandlerLoadError(f"{name}.weight: it takes {weight.shape[1]} numbers, and gets {size}")
            bias = _read(weights, f"{name}.bias", 1)
            layers.append(Dense(np.ascontiguousarray(weight.T), bias, ACTIVATIONS[activation]))
            size = layers[-1].size
    return tuple(layers)


def read_labels(raw: dict[str, Any], count: int) -> tuple[str, ...]:
    """Labels by `id2label` of config.json. Raises HandlerLoadError if it does not name `count` labels."""
    named = raw.get("id2label") or {str(number): f"LABEL_{number}" for number in range(count)}
    keys = [str(number) for number in range(count)]
    if not isinstance(named, dict) or named.keys() != set(keys):
        raise HandlerLoadError(f"config.json, id2label: expected the labels 0 to {count - 1}, as the weights have")
    return tuple(str(named[key]) for key in keys)


def _read(weights: Weights, name: str, axes: int) -> Any:
    if name not in weights or len(weights.shape(name)) != axes:
        raise HandlerLoadError(
            f"the weights have no tensor {name} of {axes} axes: --handler sequence_classification takes models for "
            "sequence classification, --handler embedding those that make vectors"
        )
    return weights.read(name).astype(np.float32)
