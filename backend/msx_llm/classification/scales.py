"""The way from logits to scores."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msx_core.generation.classify import Scale
from msx_core.tokenizer_files import read_object
from msx_llm.embedding.pooling import Array
from msx_sdk.errors import HandlerLoadError

Activation = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    """The sigmoid by tanh, which has no overflow."""
    return np.asarray((np.tanh(x / 2) + 1) / 2)


def softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def identity(x: Array) -> Array:
    return x


ACTIVATIONS: dict[str, Activation] = {"Identity": identity, "Sigmoid": sigmoid, "Softmax": softmax, "Tanh": np.tanh}
"""Activations by the last name of a torch class, such as `torch.nn.modules.activation.Sigmoid`."""


@dataclass(frozen=True)
class Scales:
    """Functions that a request's scale applies to the logits [labels]."""

    model: Activation
    files: Activation
    probability: Activation

    def apply(self, scale: Scale, logits: Array) -> Array:
        return identity(logits) if scale == "logit" else getattr(self, scale)(logits)


def read_scales(folder: Path, raw: dict[str, Any], labels: int) -> Scales:
    """`model` as the CrossEncoder of sentence-transformers reads it, `files` as vLLM. `raw` is config.json. Raises
    HandlerLoadError for an activation that is not known."""
    independent = labels == 1 or raw.get("problem_type") == "multi_label_classification"
    probability = sigmoid if independent else softmax
    named = _named(folder, raw)
    if not named:
        return Scales(sigmoid if labels == 1 else identity, probability, probability)
    name = str(named).rpartition(".")[2]
    if name not in ACTIVATIONS:
        raise HandlerLoadError(f"config.json: the activation {name} is not one of {', '.join(ACTIVATIONS)}")
    return Scales(ACTIVATIONS[name], ACTIVATIONS[name], probability)


def _named(folder: Path, raw: dict[str, Any]) -> Any:
    own = raw.get("sentence_transformers")
    return (
        read_object(folder, "config_sentence_transformers.json").get("activation_fn")
        or (own.get("activation_fn") if isinstance(own, dict) else None)
        or raw.get("sbert_ce_default_activation_function")
    )
