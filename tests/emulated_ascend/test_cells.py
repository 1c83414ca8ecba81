"""Rotation, norms, products and what else a layer computes."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

from tests.emulated_ascend import inputs, reference
from tests.emulated_ascend.apply_rotary_pos_emb import ApplyRotaryPosEmb
from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.inputs import ints, numbers
from tests.emulated_ascend.matmul import BatchMatMul, MatMul
from tests.emulated_ascend.plain import Add, Cast, Gather, GeLU, Mul, SiLU, SplitWithSize, Swiglu, Tile
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.rms_norm import AddRmsNorm, RmsNorm
from tests.emulated_ascend.test_attention import BOTH, STEP, close

pytestmark = pytest.mark.mindspore


@BOTH
@pytest.mark.parametrize("pairs", [False, True], ids=["halves", "pairs"])
def test_each_token_turns_by_its_position(dtype: Any, pairs: bool) -> None:
    given = inputs.rotate(dtype, pairs)
    results = ApplyRotaryPosEmb(3 if pairs else 2)(**given)
    for name, result in zip(("query", "key"), results, strict=True):
        tokens = floats(given[name]).astype(np.float64)
        places = (0, 1, 2, 0, 1, 2, 3)
        expected = np.array([reference.turned(x, at, 64, pairs) for x, at in zip(tokens, places, strict=True)])
        bound = 4 * STEP[dtype] * np.abs(tokens).max()  # the angles are rounded, too
        np.testing.assert_allclose(floats(result), expected, rtol=0, atol=bound)


def test_the_whole_table_serves_texts_that_start() -> None:
    given = inputs.rotate()
    whole = ApplyRotaryPosEmb(2)(**given)
    rows = ints(0, 1, 2, 0, 1, 2, 3)
    own = {name: Gather()(given[name], rows, 0) for name in ("cos", "sin")}
    gathered = ApplyRotaryPosEmb(2)(**given | own | {"position_ids": ints(30, 9)})
    for one, other in zip(whole, gathered, strict=True):
        np.testing.assert_array_equal(floats(one), floats(other))


@BOTH
def test_norms_are_computed_in_float32(dtype: Any) -> None:
    """In float16 the square of 1000 is infinite."""
    x, gamma = tensor(floats(numbers(3, 64)) * 1000, dtype), numbers(64, dtype=dtype, seed=1)
    wide = floats(x).astype(np.float64)
    root = np.sqrt((wide**2).sum(axis=1) / 64 + 1e-5)
    y, rstd = RmsNorm(1e-5)(x, gamma)
    close(y, wide / root[:, None] * floats(gamma))
    np.testing.assert_allclose(rstd.asnumpy()[:, 0], 1 / root, rtol=1e-6)


def test_epsilon_keeps_small_rows_small() -> None:
    x = tensor(np.full((1, 64), 1e-3), ms.float16)
    y, _ = RmsNorm(1e-4)(x, tensor(np.ones(64), ms.float16))
    close(y, floats(x) / np.sqrt(floats(x) ** 2 + 1e-4))


@BOTH
def test_a_sum_is_rounded_before_its_norm(dtype: Any) -> None:
    given = inputs.summed(dtype)
    y, rstd, both = AddRmsNorm()(**given)
    total = Add()(given["x1"], given["x2"])
    np.testing.assert_array_equal(floats(both), floats(total))
    for one, other in zip((y, rstd), RmsNorm(1e-6)(total, given["gamma"]), strict=True):
        np.testing.assert_array_equal(floats(one), floats(other))


@BOTH
def test_products_are_summed_in_float32_and_rounded_once(dtype: Any) -> None:
    """4096 ones: a sum in float16 ends at 2048, one in bfloat16 at 256."""
    ones = tensor(np.ones((2, 4096)), dtype)
    assert floats(MatMul(transpose_b=True)(ones, ones)).tolist() == [[4096.0] * 2] * 2
    given = inputs.product(dtype)
    close(
        MatMul(transpose_b=True)(**given),
        np.einsum("ti,oi->to", floats(given["input"]).astype(np.float64), floats(given["mat2"])),
    )


@BOTH
def test_each_head_has_a_product(dtype: Any) -> None:
    given = inputs.products(dtype)
    x, y = (floats(given[name]).astype(np.float64) for name in ("x", "y"))
    close(BatchMatMul(transpose_b=True)(**given), np.einsum("hti,hoi->hto", x, y))
    with pytest.raises(Refused, match="it must be as many as y, 1"):
        BatchMatMul(transpose_b=True)(given["x"], given["y"][:1])


def test_weights_may_lie_the_other_way() -> None:
    given = inputs.product()
    turned = tensor(floats(given["mat2"]).T, ms.float16)
    expected = MatMul(transpose_b=True)(**given)
    np.testing.assert_array_equal(floats(MatMul()(given["input"], turned)), floats(expected))


@BOTH
def test_gates(dtype: Any) -> None:
    x = numbers(3, 64, dtype=dtype)
    gate, up = np.split(floats(x).astype(np.float64), 2, axis=1)
    close(Swiglu()(x), gate / (1 + np.exp(-gate)) * up)
    wide = floats(x).astype(np.float64)
    close(SiLU()(x), wide / (1 + np.exp(-wide)))
    inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    close(GeLU()(x), wide / (1 + np.exp(-2 * inner)))


@BOTH
def test_plain_operators_round_once(dtype: Any) -> None:
    x, y = numbers(3, 64, dtype=dtype), numbers(3, 64, dtype=dtype, seed=1)
    close(Add()(x, y), floats(x) + floats(y))
    close(Mul()(x, y), floats(x) * floats(y))
    np.testing.assert_array_equal(floats(Gather()(x, ints(2, 0), 0)), floats(x)[[2, 0]])
    np.testing.assert_array_equal(floats(Gather()(x, ints(2, 0), 1)), floats(x)[:, [2, 0]])
    np.testing.assert_array_equal(Cast()(x, ms.float32).asnumpy(), floats(x))
    np.testing.assert_array_equal(floats(Tile()(x, (2, 1))), np.tile(floats(x), (2, 1)))
    first, second = SplitWithSize()(x, (48, 16), -1)
    np.testing.assert_array_equal(np.hstack((floats(first), floats(second))), floats(x))


def test_an_index_behind_the_last_row_is_refused() -> None:
    with pytest.raises(Refused, match="indices must be 0 to 2"):
        Gather()(numbers(3, 64), ints(3), 0)


def test_bfloat16_is_rounded_to_the_nearest_and_ties_to_even() -> None:
    halfway = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -(1 + 2**-8)])
    expected = [1.0, 1.015625, 1.0078125, -1.0]
    assert floats(tensor(halfway, ms.bfloat16)).tolist() == expected
