"""Filters of the tokens that may be drawn: temperature, top-k, top-p, min-p, typical.

None of them sorts the vocabulary. Each keeps all ties of the last token that it keeps, so that the order of equal
tokens never matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msx_backend.llm.sampling.largest import Ids, Row, at_least_kth
from msx_backend.llm.sampling.share import Keys, lowest
from msx_sdk.generation import SamplingParams

MANY = 64
"""A share of the tokens above 1/64 is not worth being put together."""


class TokenWeights(NamedTuple):
    """`value` [m] float32: unnormalised probabilities, 0 for what was filtered out; `ids` [m], None: 0, 1, 2 …"""

    value: Row
    ids: Ids | None

    def id(self, place: int) -> int:
        return place if self.ids is None else int(self.ids[place])


def weights(logits: Row, params: SamplingParams) -> TokenWeights:
    """The weights to draw from. logits [vocab], of which the largest is finite; temperature above 0."""
    ids = at_least_kth(logits, params.top_k) if 0 < params.top_k < logits.size else None
    scaled = scale(logits if ids is None else logits[ids], params.temperature)
    value = np.exp(scaled) if params.typical_p < 1 else np.exp(scaled, out=scaled)
    kept = value >= _floor(value, params)
    if np.count_nonzero(kept) * MANY > value.size:
        value *= kept
    else:
        few = np.flatnonzero(kept)
        scaled, value, ids = scaled[few], value[few], few if ids is None else ids[few]
    if params.typical_p < 1:
        value *= typical(scaled, value, params.typical_p)
    return TokenWeights(value, ids)


def _floor(value: Row, params: SamplingParams) -> float:
    """Top-p keeps the fewest of the likeliest tokens that have this share of the weight (Holtzman et al. 2020); min-p
    the tokens with this share of the likeliest one's weight, which is 1."""
    return max(lowest(value, value, params.top_p) if params.top_p < 1 else 0.0, params.min_p)


def scale(logits: Row, temperature: float) -> Row:
    """Log-weights at this temperature, the largest of them 0. At temperatures too low for float32 only the likeliest
    token has weight."""
    scaled: Row = logits - logits.max()
    if temperature != 1:
        with np.errstate(over="ignore"):
            scaled /= np.float32(max(temperature, 1e-30))
    return scaled


def typical(scaled: Row, value: Row, mass: float) -> NDArray[np.bool_]:
    """Keeps the fewest tokens with a log-probability near the mean that have this share (Meister et al. 2023)."""
    kept = value > 0
    logprob = scaled[kept].astype(np.float64) - np.log(value.sum(dtype=np.float64))
    entropy = -float(np.exp(logprob) @ logprob)
    distance = np.full(value.shape, np.inf)
    distance[kept] = np.abs(logprob + entropy)
    return distance <= radius(distance, value, mass)


def radius(distance: Keys, weight: Row, mass: float) -> float:
    """The distance within which the nearest have the share `mass` of all weight. distance, weight [n] >= 0."""
    return -lowest(-distance, weight, mass)
