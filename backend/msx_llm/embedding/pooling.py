"""Pools the states of a text's tokens into one vector, by the modes of sentence-transformers.

Every mode but `max` is a weighted sum over the tokens, so that the network needs one matrix product for them all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from msx_sdk.errors import HandlerLoadError

Array = np.ndarray[Any, Any]
Mode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "last"]

MODES: dict[str, Mode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "last",
}
"""Keys of `1_Pooling/config.json`, in the order in which the vectors of several modes are joined."""


@dataclass(frozen=True)
class Pooling:
    """One mode, or several whose vectors are joined."""

    modes: tuple[Mode, ...]

    @property
    def sums(self) -> tuple[Mode, ...]:
        return tuple(mode for mode in self.modes if mode != "max")

    def weights(self, sizes: Sequence[int], length: int) -> Array:
        """[texts, sums, length] float32: the weight of each token; 0 for padding."""
        weights = np.zeros((len(sizes), len(self.sums), length), np.float32)
        for row, size in zip(weights, sizes, strict=True):
            for values, mode in zip(row, self.sums, strict=True):
                values[:size] = _WEIGHTS[mode](size)
        return weights

    def join(self, sums: Array, largest: Array) -> Array:
        """sums [texts, sums, hidden] and largest [texts, hidden] → [texts, modes * hidden]"""
        rows = iter(range(sums.shape[1]))
        return np.concatenate([largest if mode == "max" else sums[:, next(rows)] for mode in self.modes], axis=-1)


def read_pooling(raw: dict[str, Any]) -> Pooling:
    """Reads `1_Pooling/config.json`. Raises HandlerLoadError if none of its modes is known."""
    named = raw.get("pooling_mode")
    named = [named] if isinstance(named, str) else named or []
    named = ["last" if mode == "lasttoken" else mode for mode in named]
    modes = tuple(mode for key, mode in MODES.items() if raw.get(key) is True or mode in named)
    if not modes or set(named) - set(modes):
        raise HandlerLoadError(f"the pooling's config.json has no mode of {', '.join(MODES)}")
    return Pooling(modes)


def normalized(vectors: Array) -> Array:
    """Vectors [..., size] scaled to length 1."""
    norms: Array = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Array = vectors / np.maximum(norms, 1e-12)
    return unit


def _one(size: int, place: int) -> Array:
    weights = np.zeros(size, np.float32)
    weights[place] = 1
    return weights


def _rising(size: int) -> Array:
    places: Array = np.arange(1, size + 1, dtype=np.float32)
    places /= places.sum()
    return places


_WEIGHTS: dict[Mode, Callable[[int], Any]] = {
    "cls": lambda size: _one(size, 0),
    "mean": lambda size: 1 / size,
    "mean_sqrt_len_tokens": lambda size: size**-0.5,
    "weightedmean": _rising,
    "last": lambda size: _one(size, -1),
}
