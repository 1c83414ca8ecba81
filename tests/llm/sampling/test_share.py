from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from msx_llm.sampling.share import FEW, SAMPLE, SORTED, largest_share
from msx_llm.sampling.sums import BLOCK, block_sums, sums_of, sums_where

SHARES = [1e-9, 0.05, 0.5, 0.9, 0.999, 1 - 1e-12]
Weights = NDArray[np.float32]


def lowest(keys: Weights, weight: Weights, share: float) -> float:
    key, sums = largest_share(keys, weight, share)
    np.testing.assert_allclose(sums, block_sums(np.where(keys >= key, weight, 0)), rtol=1e-5, atol=1e-5)
    return key


def by_sorting(keys: Weights, weight: Weights, share: float) -> float:
    order = np.argsort(-keys)
    sums = weight[order].cumsum(dtype=np.float64)
    return float(keys[order[min(int(sums.searchsorted(share * sums[-1])), keys.size - 1)]])


def weights(size: int, spread: float) -> Weights:
    logits = np.random.default_rng(size).standard_normal(size, np.float32) * np.float32(spread)
    result: Weights = np.exp(logits - logits.max())
    return result


@pytest.mark.parametrize("size", [1, SORTED + 1, FEW, FEW + 1, 40_000])
@pytest.mark.parametrize("spread", [0.01, 0.3, 1, 3, 8])
def test_like_sorting(size: int, spread: float) -> None:
    weight = weights(size, spread)
    found = [lowest(weight, weight, share) for share in SHARES]
    expected = [by_sorting(weight, weight, share) for share in SHARES]
    order = np.sort(weight)
    apart = np.abs(order.searchsorted(found) - order.searchsorted(expected))  # sums of floats are not exact
    assert apart[:-1].max() <= 1


def test_keys_need_not_be_the_weights() -> None:
    weight, keys = weights(40_000, 1), np.random.default_rng(1).standard_normal(40_000).astype(np.float32)
    assert lowest(keys, weight, 0.7) == by_sorting(keys, weight, 0.7)


@pytest.mark.parametrize("share", SHARES)
def test_all_alike(share: float) -> None:
    assert lowest(np.ones(10_000, np.float32), np.ones(10_000, np.float32), share) == 1


@pytest.mark.parametrize("share", SHARES)
def test_few_different_ones(share: float) -> None:
    weight = 2.0 ** -np.random.default_rng(2).integers(0, 9, 30_000).astype(np.float32)
    assert lowest(weight, weight, share) == by_sorting(weight, weight, share)


@pytest.mark.parametrize("place", [0, 1, 29_999])
def test_one_has_all_weight(place: int) -> None:
    weight = np.zeros(30_000, np.float32)
    weight[place] = 1
    assert [lowest(weight, weight, share) for share in SHARES] == [1] * len(SHARES)


def test_all_weight_is_at_the_lowest_keys() -> None:
    keys = np.concatenate([np.full(20_000, 5, np.float32), np.arange(20_000, dtype=np.float32) - 30_000])
    weight = np.where(keys < 0, np.float32(1), np.float32(0))
    assert lowest(keys, weight, 0.25) == -15_000


@pytest.mark.parametrize("end", [0.0, 2.0])
def test_nothing_of_the_sample_is_like_the_rest(end: float) -> None:
    """The walk goes from one end to the other."""
    size = 40_000
    keys = np.random.default_rng(3).random(size).astype(np.float32)
    keys[:: size // SAMPLE] = end
    assert [lowest(keys, keys, share) for share in SHARES[:-1]] == [
        pytest.approx(by_sorting(keys, keys, share), abs=1e-4) for share in SHARES[:-1]
    ]


def test_keys_that_cannot_be_counted_in_bins() -> None:
    keys = np.random.default_rng(4).random(5_000)
    keys[:2_500] = -np.inf
    weight = np.ones(5_000, np.float32)
    assert largest_share(keys, weight, 0.9).key == -np.inf
    assert largest_share(keys[:FEW], weight[:FEW], 0.9).key == -np.inf


@pytest.mark.parametrize("size", [1, BLOCK, BLOCK + 1, 5 * BLOCK - 1])
@pytest.mark.parametrize("quantile", [0.5, 0.999])
def test_sums(size: int, quantile: float) -> None:
    weight = weights(size, 1)
    kept = weight >= np.quantile(weight, quantile)
    blocks = [weight[start : start + BLOCK] for start in range(0, size, BLOCK)]
    assert block_sums(weight) == pytest.approx([float(block.sum(dtype=np.float64)) for block in blocks])
    assert sums_where(weight, kept) == pytest.approx(block_sums(np.where(kept, weight, 0)))
    some = np.flatnonzero(kept)
    assert sums_of(weight[some], some, size) == pytest.approx(block_sums(np.where(kept, weight, 0)))
