from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest

from tests.emulated_ascend import expert_calls
from tests.emulated_ascend.expert_calls import COUNTS
from tests.emulated_ascend.experts import FusedAddTopKDiv, MoeGatingTopKSoftmax, MoeInitRoutingV2, MoeTokenUnpermute
from tests.emulated_ascend.grouped_matmul import GroupedMatmulV4
from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.inputs import ints, numbers
from tests.emulated_ascend.refused import Refused
from tests.emulated_ascend.registry import emulated
from tests.emulated_ascend.test_attention import BOTH, close

pytestmark = pytest.mark.mindspore


def test_the_largest_of_a_softmax_are_taken() -> None:
    x = tensor([[1, 3, 2, 0], [0, 0, 0, 5]], ms.float16)
    weights, ids, _ = MoeGatingTopKSoftmax()(x, None, 2)
    assert ids.asnumpy().tolist() == [[1, 2], [3, 0]]
    whole = np.exp([[3, 2], [5, 0]]) / np.exp([[1, 3, 2, 0], [0, 0, 0, 5]]).sum(1, keepdims=True)
    close(weights, whole)


def test_groups_are_taken_first_and_the_bias_is_not_in_the_weights() -> None:
    """Two groups of three: the first has the best expert, the second the best two, whose order the bias turns."""
    x, bias = tensor([[4, -9, -9, 1, 2, -9]], ms.float32), tensor([0.3, 0, 0, 0.3, 0, 0], ms.float32)
    weights, ids = FusedAddTopKDiv()(x, bias, 2, 1, 2, 2, 0, True, 2.0)
    assert ids.asnumpy().tolist() == [[3, 4]]
    sigmoid = 1 / (1 + np.exp([-1.0, -2.0]))
    np.testing.assert_allclose(weights.asnumpy(), [2 * sigmoid / sigmoid.sum()], rtol=1e-6)


@BOTH
def test_rows_go_to_their_experts_and_come_back(dtype: Any) -> None:
    given = expert_calls.route(dtype)
    rows, places, counts, unread = MoeInitRoutingV2()(**given)
    assert counts.asnumpy().tolist() == list(COUNTS)
    of_row = np.repeat(np.arange(8), COUNTS)
    for token, experts in enumerate(given["expert_idx"].asnumpy()):
        for choice, expert in enumerate(experts):
            place = int(places.asnumpy()[token * 2 + choice])
            assert of_row[place] == expert
            np.testing.assert_array_equal(floats(rows)[place], floats(given["x"])[token])
    assert (unread.asnumpy() < 0).all()
    probs = tensor([[0.5, 0.5], [0.25, 0.5], [1, 0]], dtype)
    close(MoeTokenUnpermute()(rows, places, probs), floats(given["x"]) * [[1], [0.75], [1]])


@BOTH
@pytest.mark.parametrize("kind", [0, 1], ids=["ends", "counts"])
def test_each_expert_multiplies_its_rows(dtype: Any, kind: int) -> None:
    given = expert_calls.grouped(dtype, group_list_type=kind)
    if not kind:
        given["group_list"] = expert_calls.counted(*np.cumsum(COUNTS).tolist())
    (result,) = GroupedMatmulV4()(**given)
    x, weight = floats(given["x"][0]).astype(np.float64), floats(given["weight"][0])
    close(result, np.array([row @ weight[expert] for row, expert in zip(x, (0, 0, 2, 5, 5, 5), strict=True)]))


def test_rows_of_nobody_are_not_to_be_read() -> None:
    given = expert_calls.grouped(group_list=expert_calls.counted(2, 0, 1, 0, 0, 0, 0, 0))
    (result,) = GroupedMatmulV4()(**given)
    assert np.isnan(floats(result)).all(axis=1).tolist() == [False] * 3 + [True] * 3
    zeros = {
        "permuted_tokens": result,
        "sorted_indices": ints(*range(6)),
        "probs": tensor(np.zeros((3, 2)), ms.float16),
    }
    assert np.isnan(floats(MoeTokenUnpermute()(**zeros))).any(), "a weight of 0 does not hide them"


def test_int8_experts_have_two_scales() -> None:
    given = expert_calls.grouped_int8()
    (result,) = GroupedMatmulV4()(**given)
    x, weight = (given[name][0].asnumpy().astype(np.int64) for name in ("x", "weight"))
    scale, of_rows = floats(given["scale"][0]), given["pre_token_scale"][0].asnumpy()
    rows = zip(x, (0, 0, 2, 5, 5, 5), of_rows, strict=True)
    close(result, np.array([(row @ weight[expert]) * scale[expert] * own for row, expert, own in rows]))


@BOTH
def test_int8_experts_beside_16_bits_have_a_scale_and_an_offset(dtype: Any) -> None:
    given = expert_calls.grouped_beside_int8(dtype)
    (result,) = GroupedMatmulV4()(**given)
    codes = given["weight"][0].asnumpy().astype(np.float64)
    scale, offset = (floats(given[f"antiquant_{name}"][0]).astype(np.float64)[:, None] for name in ("scale", "offset"))
    weight = (codes + offset) * scale
    rows = zip(floats(given["x"][0]).astype(np.float64), (0, 0, 2, 5, 5, 5), strict=True)
    assert result.dtype == dtype
    close(result, np.array([row @ weight[expert] for row, expert in rows]))


def test_310p_wants_aligned_experts() -> None:
    given = expert_calls.grouped(weight=[numbers(4, 64, 32)], group_list=expert_calls.counted(2, 0, 1, 3))
    GroupedMatmulV4()(**given)
    with emulated(chip="310P"), pytest.raises(Refused, match="on 310P E must divide by 8"):
        GroupedMatmulV4()(**given)
