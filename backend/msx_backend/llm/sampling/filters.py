"""Filters of the tokens that may be drawn: temperature, top-k, top-p, min-p, typical.

None of them sorts the vocabulary. Each keeps all ties of the last token that it keeps, so that the order of equal
tokens never matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msx_backend.llm.sampling.largest import Ids, Row, at_least_kth
from msx_sdk.generation import SamplingParams

Distances = NDArray[np.float32] | NDArray[np.float64]
BINS, BINS_PER_UNIT = 512, 16
NEAR = 5.0


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
    value = np.exp(scaled)
    if params.top_p < 1:
        value *= top_p(scaled, value, params.top_p)
    if params.min_p > 0:
        value *= value >= params.min_p  # the likeliest has weight 1
    if params.typical_p < 1:
        value *= typical(scaled, value, params.typical_p)
    return TokenWeights(value, ids)


def scale(logits: Row, temperature: float) -> Row:
    """Log-weights at this temperature, the largest of them 0. At temperatures too low for float32 only the likeliest
    token has weight."""
    with np.errstate(over="ignore"):
        scaled: Row = (logits - logits.max()) / np.float32(max(temperature, 1e-30))
    return scaled


def top_p(scaled: Row, value: Row, mass: float) -> NDArray[np.bool_]:
    """Keeps the fewest of the likeliest tokens that have this share of the weight (Holtzman et al. 2020)."""
    distance = -scaled
    return distance <= radius(distance, value, mass)


def typical(scaled: Row, value: Row, mass: float) -> NDArray[np.bool_]:
    """Keeps the fewest tokens with a log-probability near the mean that have this share (Meister et al. 2023)."""
    kept = value > 0
    logprob = scaled[kept].astype(np.float64) - np.log(value.sum(dtype=np.float64))
    entropy = -float(np.exp(logprob) @ logprob)
    distance = np.full(value.shape, np.inf)
    distance[kept] = np.abs(logprob + entropy)
    return distance <= radius(distance, value, mass)


def radius(distance: Distances, weight: Row, mass: float) -> float:
    """The distance within which the nearest have the share `mass` of all weight. distance, weight [n] >= 0.

    Most distributions are narrow, so that looking at near values is usually enough.
    """
    wanted = mass * float(weight.sum(dtype=np.float64))
    near = np.flatnonzero(distance <= NEAR)
    if float(weight[near].sum(dtype=np.float64)) < wanted:
        return _reach(distance, weight, wanted)
    return _reach(distance[near], weight[near], wanted)


def _reach(distance: Distances, weight: Row, wanted: float) -> float:
    """A histogram finds a narrow band that contains the distance; only values in this band are sorted."""
    band = np.minimum(distance * BINS_PER_UNIT, BINS - 1).astype(np.intp)
    sums = np.bincount(band, weight, BINS)
    ends = sums.cumsum()
    crossed = min(int(ends.searchsorted(wanted)), int(band.max()))
    inside = np.flatnonzero(band == crossed)
    inside = inside[np.argsort(distance[inside], kind="stable")]
    reached = ends[crossed] - sums[crossed] + weight[inside].cumsum(dtype=np.float64)
    return float(distance[inside[min(int(reached.searchsorted(wanted)), inside.size - 1)]])
