from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

from tests.emulated_ascend import quantised_calls
from tests.emulated_ascend.format_cast import FormatCast, format_cast
from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.inputs import numbers
from tests.emulated_ascend.quantised import DynamicQuantExt, QuantBatchMatmul, QuantV2, WeightQuantBatchMatmul
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.registry import emulated
from tests.emulated_ascend.test_attention import BOTH, close

pytestmark = pytest.mark.mindspore


@BOTH
def test_numbers_are_scaled_moved_and_bounded(dtype: Any) -> None:
    x = tensor([[0, 1, -1, 100, -100, 0.5]], dtype)
    result = QuantV2()(x, tensor([2], dtype), tensor([3], dtype), False, "ROUND", ms.int8)
    assert result.asnumpy().tolist() == [[3, 5, 1, 127, -128, 4]]


@BOTH
def test_the_largest_number_of_a_row_is_127(dtype: Any) -> None:
    x = tensor([[1, -2, 4], [0, 0, 0]], dtype)
    result, scales = DynamicQuantExt()(x, None)
    assert result.asnumpy().tolist() == [[32, -64, 127], [0, 0, 0]]
    np.testing.assert_allclose(scales.asnumpy(), [4 / 127, 0], rtol=1e-6)


@pytest.mark.parametrize("attributes", [quantised_calls.HALF_RESULT, quantised_calls.BF16_RESULT], ids=str)
def test_products_of_int8_are_exact_before_they_are_scaled(attributes: dict[str, Any]) -> None:
    given = quantised_calls.fixed()
    x, weight = (given[name].asnumpy().astype(np.int64) for name in ("x1", "x2"))
    sums = x @ weight.T
    own = QuantBatchMatmul(**attributes)
    close(own(**given), (sums + given["bias"].asnumpy()) * given["scale"].asnumpy())
    given = quantised_calls.dynamic()
    close(own(**given), sums * given["scale"].asnumpy() * given["pertokenScaleOptional"].asnumpy()[:, None])


def test_a_product_of_many_int8_is_exact() -> None:
    """2048 * 127 * 127 + 1 has more bits than float32."""
    x, weight = np.full((1, 2049), 127), np.full((1, 2049), 127)
    x[0, 0] = weight[0, 0] = 1
    scale = tensor([2.0**-15], ms.float32)
    operands = tensor(x, ms.int8), tensor(weight, ms.int8), scale
    bias = tensor([-(2048 * 127 * 127)], ms.int32)
    assert floats(QuantBatchMatmul(False, True)(*operands, None, bias)).item() == 2.0**-15


def test_310p_takes_the_bits_of_scales() -> None:
    given = quantised_calls.fixed()
    bits = given["scale"].asnumpy().view(np.uint32).astype(np.int64)
    expected = QuantBatchMatmul(False, True)(**given)
    with emulated(chip="310P"):
        result = QuantBatchMatmul(False, True)(**given | {"scale": tensor(bits, ms.int64)})
        with pytest.raises(Refused, match="must be Int64"):
            QuantBatchMatmul(False, True)(**given)
    np.testing.assert_array_equal(floats(result), floats(expected))


@BOTH
def test_weights_of_int8_are_widened(dtype: Any) -> None:
    given = quantised_calls.narrow(dtype)
    weight = given["weight"].asnumpy().astype(np.float64) + floats(given["antiquant_offset"])
    expected = floats(given["x"]) @ (weight * floats(given["antiquant_scale"]))
    result = WeightQuantBatchMatmul()(**given)
    np.testing.assert_allclose(floats(result), expected, rtol=0.01, atol=1e-3)
    turned = given | {"weight": tensor(given["weight"].asnumpy().T, ms.int8)}
    np.testing.assert_array_equal(floats(WeightQuantBatchMatmul(False, True)(**turned)), floats(result))


def test_groups_of_inputs_have_scales_of_their_own() -> None:
    given = quantised_calls.in_groups()
    x, weight = floats(given["x"]).astype(np.float64), given["weight"].asnumpy()
    scale = floats(given["antiquant_scale"])
    expected = x[:, :32] @ weight[:32] * scale[0] + x[:, 32:] @ weight[32:] * scale[1]
    result = WeightQuantBatchMatmul(antiquant_group_size=32)(**given)
    np.testing.assert_allclose(floats(result), expected, rtol=0.01, atol=1e-3)
    turned = {"weight": given["weight"].asnumpy().T, "antiquant_scale": floats(given["antiquant_scale"]).T}
    other = given | {name: tensor(it, given[name].dtype) for name, it in turned.items()}
    np.testing.assert_array_equal(floats(WeightQuantBatchMatmul(False, True, 32)(**other)), floats(result))


def test_only_310p_has_another_layout() -> None:
    with pytest.raises(Refused, match="910B takes tensors as they are"):
        format_cast(numbers(32, 64), 29)
    with emulated(chip="310P"):
        np.testing.assert_array_equal(floats(FormatCast()(numbers(32, 64), 29)), floats(numbers(32, 64)))
        with pytest.raises(Refused, match="FRACTAL_NZ"):
            format_cast(numbers(32, 64), 2)
        with pytest.raises(Refused, match="32 bytes"):
            format_cast(numbers(32, 24), 29)
