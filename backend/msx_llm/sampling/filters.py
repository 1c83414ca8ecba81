"""Filters of the tokens that may be drawn: temperature, top-k, top-p, min-p, typical.

None of them sorts the vocabulary. Each keeps all ties of the last token that it keeps, so that the order of equal
tokens never matters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msx_llm.sampling.largest import Ids, Row, at_least_kth
from msx_llm.sampling.share import KeptShare, Keys, largest_share
from msx_llm.sampling.sums import BLOCK, Sums, block_sums, sums_where
from msx_sdk.generation import SamplingParams

CHUNK = 256 * BLOCK
"""So many weights are computed and summed before the next ones: they stay in the processor's cache meanwhile."""


class TokenWeights(NamedTuple):
    """`value` [m] float32: unnormalised probabilities; below `floor` none counts. `sums` are of those that do. `ids`
    [m], None: 0, 1, 2 …"""

    value: Row
    floor: float
    sums: Sums
    ids: Ids | None

    def id(self, place: int) -> int:
        return place if self.ids is None else int(self.ids[place])

    def block(self, number: int) -> Row:
        """One of the blocks that are summed: 0 for what was filtered out."""
        return self._kept(self.value[number * BLOCK : (number + 1) * BLOCK])

    def kept(self) -> Row:
        """`value`, 0 for what was filtered out."""
        return self._kept(self.value)

    def _kept(self, value: Row) -> Row:
        kept: Row = value * (value >= self.floor)
        return kept


def weights(logits: Row, params: SamplingParams, peak: np.float32) -> TokenWeights:
    """The weights to draw from. logits [vocab], of which the largest, `peak`, is finite; temperature above 0."""
    ids = at_least_kth(logits, params.top_k) if 0 < params.top_k < logits.size else None
    value, sums = exponentials(logits if ids is None else logits[ids], params.temperature, peak)
    floor, sums = _nucleus(value, sums, params)
    made = TokenWeights(value, floor, sums, ids)
    return made if params.typical_p >= 1 else _typical(made, params.typical_p)


def exponentials(logits: Row, temperature: float, peak: np.float32) -> tuple[Row, Sums]:
    """The weights at this temperature, that of `peak` 1, and their sums. At temperatures too low for float32 only
    the likeliest token has weight."""
    value, sums = np.empty_like(logits), []
    for start in range(0, logits.size, CHUNK):
        chunk = value[start : start + CHUNK]
        np.subtract(logits[start : start + CHUNK], peak, out=chunk)
        if temperature != 1:
            cool(chunk, temperature)
        np.exp(chunk, out=chunk)
        sums.append(block_sums(chunk))
    return value, np.concatenate(sums)


def cool(scaled: Row, temperature: float) -> None:
    """Divide by the temperature in place."""
    with np.errstate(over="ignore"):
        scaled /= np.float32(max(temperature, 1e-30))


def _nucleus(value: Row, sums: Sums, params: SamplingParams) -> KeptShare:
    """Top-p keeps the fewest of the likeliest tokens that have this share of the weight (Holtzman et al. 2020); min-p
    the tokens with this share of the likeliest one's weight, which is 1."""
    nucleus = largest_share(value, value, params.top_p, sums) if params.top_p < 1 else KeptShare(0.0, sums)
    if params.min_p <= nucleus.key:
        return nucleus
    return KeptShare(params.min_p, sums_where(value, value >= params.min_p))


def _typical(made: TokenWeights, mass: float) -> TokenWeights:
    value = made.kept()
    value *= typical(value, mass)
    return TokenWeights(value, 0.0, block_sums(value), made.ids)


def typical(value: Row, mass: float) -> NDArray[np.bool_]:
    """Keeps the fewest tokens with a log-probability near the mean that have this share (Meister et al. 2023)."""
    kept = value > 0
    logprob = np.log(value[kept].astype(np.float64) / value.sum(dtype=np.float64))
    entropy = -float(np.exp(logprob) @ logprob)
    distance = np.full(value.shape, np.inf)
    distance[kept] = np.abs(logprob + entropy)
    return distance <= radius(distance, value, mass)


def radius(distance: Keys, weight: Row, mass: float) -> float:
    """The distance within which the nearest have the share `mass` of all weight. distance, weight [n] >= 0."""
    return -largest_share(-distance, weight, mass).key
