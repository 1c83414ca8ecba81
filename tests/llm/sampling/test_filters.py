"""Each filter against its definition, by sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from msx_llm.sampling.filters import CHUNK, radius, weights
from msx_llm.sampling.sums import block_sums
from msx_sdk.generation import SamplingParams

Probabilities = NDArray[np.float64]


def softmax(logits: NDArray[np.float32], temperature: float = 1.0) -> Probabilities:
    powers: Probabilities = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    return np.divide(powers, powers.sum())


def renormalised(probabilities: Probabilities, kept: NDArray[np.bool_]) -> Probabilities:
    return np.divide(np.where(kept, probabilities, 0), probabilities[kept].sum())


def naive_top_k(probabilities: Probabilities, k: int) -> Probabilities:
    return renormalised(probabilities, probabilities >= np.sort(probabilities)[-min(k, probabilities.size)])


def naive_nearest(probabilities: Probabilities, distance: Probabilities, mass: float) -> Probabilities:
    order = np.argsort(distance, kind="stable")
    before = probabilities[order].cumsum() - probabilities[order]
    kept = np.zeros(probabilities.size, bool)
    kept[order[before < mass]] = True
    return renormalised(probabilities, kept & (probabilities > 0))


def naive_top_p(probabilities: Probabilities, mass: float) -> Probabilities:
    return naive_nearest(probabilities, -probabilities, mass)


def naive_min_p(probabilities: Probabilities, share: float) -> Probabilities:
    return renormalised(probabilities, probabilities >= share * probabilities.max())


def naive_typical(probabilities: Probabilities, mass: float) -> Probabilities:
    surprise = -np.log(probabilities, where=probabilities > 0, out=np.full(probabilities.size, -np.inf))
    entropy = (probabilities * np.where(probabilities > 0, surprise, 0)).sum()
    return naive_nearest(probabilities, np.abs(surprise - entropy), mass)


def naive(logits: NDArray[np.float32], params: SamplingParams) -> Probabilities:
    result = softmax(logits, params.temperature)
    if params.top_k:
        result = naive_top_k(result, params.top_k)
    return naive_typical(naive_min_p(naive_top_p(result, params.top_p), params.min_p), params.typical_p)


def distribution(logits: NDArray[np.float32], params: SamplingParams) -> Probabilities:
    left = weights(logits, params, logits.max())
    result = np.zeros(logits.size)
    result[... if left.ids is None else left.ids] = left.kept()
    np.testing.assert_allclose(left.sums, block_sums(left.kept()), rtol=1e-5, atol=1e-12)
    return np.divide(result, result.sum())


ALONE = [
    SamplingParams(),
    SamplingParams(temperature=0.3),
    SamplingParams(temperature=3),
    SamplingParams(top_k=1),
    SamplingParams(top_k=7),
    SamplingParams(top_k=10_000),
    SamplingParams(top_p=0.05),
    SamplingParams(top_p=0.9),
    SamplingParams(min_p=0.1),
    SamplingParams(typical_p=0.3),
    SamplingParams(typical_p=0.95),
]


@pytest.mark.parametrize("params", ALONE, ids=str)
@pytest.mark.parametrize("spread", [0.1, 1, 5, 20])
@pytest.mark.parametrize("size", [3_000, CHUNK + 300])
def test_each_alone(params: SamplingParams, spread: float, size: int) -> None:
    logits = (np.random.default_rng(1).standard_normal(size) * spread).astype(np.float32)
    np.testing.assert_allclose(distribution(logits, params), naive(logits, params), rtol=1e-4, atol=1e-9)


@given(
    st.integers(0, 2**32),
    st.sampled_from([0.5, 3.0]),
    st.builds(
        SamplingParams,
        temperature=st.floats(0.1, 5),
        top_k=st.integers(0, 60),
        top_p=st.floats(0.05, 1),
        min_p=st.floats(0, 0.5),
        typical_p=st.floats(0.05, 1),
    ),
)
def test_all_together(seed: int, spread: float, params: SamplingParams) -> None:
    logits = (np.random.default_rng(seed).standard_normal(200) * spread).astype(np.float32)
    np.testing.assert_allclose(distribution(logits, params), naive(logits, params), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("params", [SamplingParams(top_k=2), SamplingParams(top_p=0.3)])
def test_ties_stay_together(params: SamplingParams) -> None:
    logits = np.array([2, 1, 2, 2, 0], np.float32)
    assert (distribution(logits, params) > 0).tolist() == [True, False, True, True, False]


def test_what_is_banned_stays_banned() -> None:
    logits = np.array([-np.inf, 0, 0, -np.inf], np.float32)
    params = SamplingParams(top_k=3, top_p=0.999, min_p=0.0, typical_p=0.999)
    assert distribution(logits, params).tolist() == [0, 0.5, 0.5, 0]


def test_very_cold() -> None:
    logits = np.array([1, 1.0001, -3e38, 3], np.float32)
    assert distribution(logits, SamplingParams(temperature=1e-5, typical_p=0.9)).tolist() == [0, 0, 0, 1]


def test_all_weight_is_far_away() -> None:
    distance, weight = np.array([0, 900, 901], np.float32), np.array([0, 1, 1], np.float32)
    assert radius(distance, weight, 0.6) == 901
