from __future__ import annotations

import numpy as np
import pytest

from msx_llm.sampling.draw import RandomNumbers, draw
from msx_llm.sampling.filters import TokenWeights
from msx_llm.sampling.largest import Row
from msx_llm.sampling.sums import BLOCK, block_sums


def plain(weights: Row) -> TokenWeights:
    return TokenWeights(weights, 0.0, block_sums(weights), None)


@pytest.mark.parametrize("size", [1, 3, BLOCK, BLOCK + 1, 1_000])
def test_each_place_has_its_share(size: int) -> None:
    weights = np.random.default_rng(size).random(size).astype(np.float32)
    weights[size // 2 :: 3] = 0
    weights[0] = 1
    ends = weights.cumsum(dtype=np.float64) / weights.sum(dtype=np.float64)
    uniforms = np.random.default_rng(0).random(2_000)
    assert [draw(plain(weights), uniform) for uniform in uniforms] == ends.searchsorted(uniforms, side="right").tolist()


@pytest.mark.parametrize("uniform", [0.0, 0.5, np.nextafter(1, 0)])
def test_what_has_no_weight_is_never_drawn(uniform: float) -> None:
    weights = np.zeros(500, np.float32)
    weights[[200, 201]] = 1e-30, 1
    assert draw(plain(weights), uniform) in (200, 201)


def test_rounding_leads_to_the_last_one_that_has_weight() -> None:
    assert draw(plain(np.array([1, 1, 0], np.float32)), 1.0) == 1


def test_what_is_below_the_floor_is_never_drawn() -> None:
    weights = np.tile(np.array([3, 1, 2], np.float32), BLOCK)
    left = TokenWeights(weights, 2.0, block_sums(np.where(weights < 2, 0, weights)), None)
    drawn = [draw(left, uniform) for uniform in np.random.default_rng(0).random(500)]
    assert {weights[token] for token in drawn} == {2, 3}


@pytest.mark.parametrize("empty", range(3))
def test_a_block_of_which_rounding_left_a_little_is_passed_over(empty: int) -> None:
    weights = np.ones(3 * BLOCK, np.float32)
    weights[empty * BLOCK : (empty + 1) * BLOCK] = 0
    sums = block_sums(weights)
    sums[empty] = 1e-6
    before = float(sums[:empty].sum() / sums.sum())
    assert draw(TokenWeights(weights, 0.5, sums, None), before + 1e-10) == (empty + 1) % 3 * BLOCK


def test_dice_depend_on_the_seed_and_the_number_of_the_throw() -> None:
    def throws(seed: int) -> list[float]:
        dice = RandomNumbers(seed)
        return [dice.throw() for _ in range(3)]

    assert throws(5) == throws(5)
    assert len({throw for seed in (5, 6, 5 + 2**32, 2**64 - 1) for throw in throws(seed)}) == 12


def test_the_numbers_of_a_seed_stay_the_same_from_release_to_release() -> None:
    dice = RandomNumbers(42)
    assert [round(dice.throw(), 6) for _ in range(2)] == [0.820198, 0.189246]
