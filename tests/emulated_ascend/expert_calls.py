"""Calls of the operators of experts: 3 tokens of width 64, 8 experts, 2 of them for each token."""

from __future__ import annotations

from functools import partial
from typing import Any

import mindspore as ms

from tests.emulated_ascend.calls import BF16, Case
from tests.emulated_ascend.inputs import Arguments, ints, numbers

FLOAT = ms.float32
COUNTS = (2, 0, 1, 0, 0, 3, 0, 0)
"""Rows of each expert."""


def gate(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    return {"x": numbers(3, 8, dtype=dtype), "k": 2} | changes


def groups(dtype: Any = FLOAT, **changes: Any) -> Arguments:
    """2 of 4 groups of 8."""
    given = {"x": numbers(3, 32, dtype=dtype), "add_num": numbers(32, dtype=dtype, seed=1)}
    return given | {"group_num": 4, "group_topk": 2, "n": 2, "k": 6} | changes


def route(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    flags = {
        "active_num": 0,
        "expert_capacity": 0,
        "expert_num": 8,
        "drop_pad_mode": 0,
        "expert_tokens_count_or_cumsum_flag": 2,
        "expert_tokens_before_capacity_flag": True,
    }
    return {"x": numbers(3, 64, dtype=dtype), "expert_idx": ints([5, 0], [0, 5], [5, 2])} | flags | changes


def grouped(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    given = {"x": [numbers(6, 64, dtype=dtype)], "weight": [numbers(8, 64, 32, dtype=dtype)]}
    return given | {"group_list": counted(*COUNTS), "split_item": 3, "group_type": 0, "group_list_type": 1} | changes


def counted(*counts: int) -> Any:
    return ints(*counts, dtype=ms.int64)


def grouped_int8(**changes: Any) -> Arguments:
    operands = {"x": [numbers(6, 64, dtype=ms.int8, scale=40)], "weight": [numbers(8, 64, 32, dtype=ms.int8, scale=40)]}
    scales = {"scale": [numbers(8, 32, dtype=BF16)], "pre_token_scale": [numbers(6, dtype=FLOAT)]}
    return grouped() | operands | scales | changes


def grouped_beside_int8(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    operands = {"x": [numbers(6, 64, dtype=dtype)], "weight": [numbers(8, 64, 32, dtype=ms.int8, scale=40)]}
    factors = {name: [numbers(8, 32, dtype=dtype, seed=1)] for name in ("antiquant_scale", "antiquant_offset")}
    return grouped() | operands | factors | changes


def back(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    places = {"sorted_indices": ints(3, 0, 1, 4, 5, 2), "probs": numbers(3, 2, dtype=dtype)}
    return {"permuted_tokens": numbers(6, 64, dtype=dtype), **places} | changes


def refused(name: str, operator: str, arguments: Any, says: str, front_end: bool = True, **changes: Any) -> Case:
    return Case(name, operator, partial(arguments, **changes), {}, says, front_end)


ACCEPTED = (
    Case("float16", "MoeGatingTopKSoftmax", gate),
    Case("float32", "MoeGatingTopKSoftmax", partial(gate, FLOAT)),
    Case("float32", "FusedAddTopKDiv", groups),
    Case("bfloat16", "FusedAddTopKDiv", partial(groups, BF16)),
    Case("float16", "MoeInitRoutingV2", route),
    Case("bfloat16", "MoeInitRoutingV2", partial(route, BF16)),
    Case("float16", "GroupedMatmulV4", grouped),
    Case("bfloat16", "GroupedMatmulV4", partial(grouped, BF16)),
    Case("ends", "GroupedMatmulV4", partial(grouped, group_list=counted(2, 2, 3, 3, 3, 6, 6, 6), group_list_type=0)),
    Case(
        "rows of other ranks' experts", "GroupedMatmulV4", partial(grouped, group_list=counted(2, 0, 1, 0, 0, 0, 0, 0))
    ),
    Case("a bias", "GroupedMatmulV4", partial(grouped, bias=[numbers(8, 32)])),
    Case("a bias in bfloat16", "GroupedMatmulV4", partial(grouped, BF16, bias=[numbers(8, 32, dtype=FLOAT)])),
    Case("int8", "GroupedMatmulV4", grouped_int8),
    Case("int8 beside float16", "GroupedMatmulV4", grouped_beside_int8),
    Case("int8 beside bfloat16", "GroupedMatmulV4", partial(grouped_beside_int8, BF16)),
    Case("float16", "MoeTokenUnpermute", back),
    Case("bfloat16", "MoeTokenUnpermute", partial(back, BF16)),
)

GATE, GROUPS, ROUTE = "MoeGatingTopKSoftmax", "FusedAddTopKDiv", "MoeInitRoutingV2"
GROUPED, BACK = "GroupedMatmulV4", "MoeTokenUnpermute"

REFUSED = (
    refused("more choices than experts", GATE, gate, "1 to 8 experts", k=9),
    refused("int32", GATE, gate, "dtype must be Float16", False, x=ints([1, 2])),
    refused("finished tokens", GATE, gate, "must be None", finished=ints(1, 0, 1, dtype=ms.bool_)),
    refused("groups of unequal sizes", GROUPS, groups, "must divide by it", group_num=5),
    refused("more groups than there are", GROUPS, groups, "1 to 4 groups", group_topk=5),
    refused("more experts than a group has", GROUPS, groups, "1 to the 8 experts", n=9),
    refused("more experts than the groups have", GROUPS, groups, "1 to 16 experts", k=17),
    refused("another number of experts", GROUPS, groups, "shape must be [32]", add_num=numbers(31, dtype=FLOAT)),
    refused("another dtype", GROUPS, groups, "dtype must be x's", add_num=numbers(32)),
    refused("softmax", GROUPS, groups, "must be 0, sigmoid", activate_type=1),
    refused("a map of experts", GROUPS, groups, "must be False", enable_expert_mapping=True),
    refused(
        "int64 experts",
        ROUTE,
        route,
        "dtype must be Int32",
        False,
        expert_idx=ints([5, 0], [0, 5], [5, 2], dtype=ms.int64),
    ),
    refused("an expert behind the last", ROUTE, route, "0 to 7", expert_idx=ints([8, 0], [0, 5], [5, 2])),
    refused("fewer tokens", ROUTE, route, "each of 3 tokens", False, expert_idx=ints([5, 0], [0, 5])),
    refused("a capacity", ROUTE, route, "must be 0", expert_capacity=2),
    refused("padding", ROUTE, route, "must be 0", drop_pad_mode=1),
    refused("active tokens", ROUTE, route, "must be 0", active_num=3),
    refused("summed counts", ROUTE, route, "must be 2", expert_tokens_count_or_cumsum_flag=1),
    refused("tensors without a list", GROUPED, grouped, "a list of one tensor", False, x=numbers(6, 64)),
    refused("[E, out, in]", GROUPED, grouped, "not transposed", False, weight=[numbers(8, 32, 64)]),
    refused("another dtype", GROUPED, grouped, "dtype must be x's", weight=[numbers(8, 64, 32, dtype=BF16)]),
    refused("int32 counts", GROUPED, grouped, "dtype must be Int64", group_list=ints(*COUNTS)),
    refused("no counts", GROUPED, grouped, "must be a tensor", False, group_list=None),
    refused("fewer counts", GROUPED, grouped, "shape must be [8]", group_list=counted(2, 1, 3)),
    refused("more counts than rows", GROUPED, grouped, "x's 6 rows", group_list=counted(2, 0, 1, 0, 0, 3, 0, 1)),
    refused("counts for ends", GROUPED, grouped, "fewer rows than none", group_list_type=0),
    refused("several results", GROUPED, grouped, "must be 3", False, split_item=0),
    refused("int8 without scales", GROUPED, grouped_int8, "a list of one tensor", scale=None),
    refused("scales in float16", GROUPED, grouped_int8, "dtype must be BFloat16", False, scale=[numbers(8, 32)]),
    refused("scales of float16", GROUPED, grouped, "must be None", False, scale=[numbers(8, 32)]),
    refused("a kind of counts that is not known", GROUPED, grouped, "ends) or 1", group_list_type=2),
    refused("a bias of fewer experts", GROUPED, grouped, "shape must be [8, 32]", bias=[numbers(7, 32)]),
    refused("a bias of another dtype", GROUPED, grouped, "dtype must be Float16", bias=[numbers(8, 32, dtype=FLOAT)]),
    refused("a bias that is no list", GROUPED, grouped, "a list of one tensor", False, bias=numbers(8, 32)),
    refused("a bias beside int8", GROUPED, grouped_int8, "must be None", bias=[numbers(8, 32)]),
    refused("an activation", GROUPED, grouped, "must be 0", act_type=1),
    refused("no groups", GROUPED, grouped, "must be 0", False, group_type=-1),
    refused("int8 without scales of rows", GROUPED, grouped_int8, "a list of one tensor", pre_token_scale=None),
    refused(
        "scales of fewer experts", GROUPED, grouped_int8, "shape must be [8, 32]", scale=[numbers(7, 32, dtype=BF16)]
    ),
    refused(
        "scales of fewer rows", GROUPED, grouped_int8, "shape must be [6]", pre_token_scale=[numbers(5, dtype=FLOAT)]
    ),
    refused("scales of rows alone", GROUPED, grouped, "must be None", pre_token_scale=[numbers(6, dtype=FLOAT)]),
    refused("int8 without offsets", GROUPED, grouped_beside_int8, "a list of one tensor", antiquant_offset=None),
    refused("int8 with offsets alone", GROUPED, grouped_beside_int8, "a list of one tensor", antiquant_scale=None),
    refused(
        "factors of another dtype",
        GROUPED,
        grouped_beside_int8,
        "dtype must be x's",
        antiquant_scale=[numbers(8, 32, dtype=BF16)],
    ),
    refused(
        "factors of groups",
        GROUPED,
        grouped_beside_int8,
        "2 axes",
        antiquant_scale=[numbers(8, 2, 32)],
        antiquant_offset=[numbers(8, 2, 32)],
    ),
    refused("factors of fewer experts", GROUPED, grouped_beside_int8, "[8, 32]", antiquant_scale=[numbers(7, 32)]),
    refused("scales beside factors", GROUPED, grouped_beside_int8, "must be None", scale=[numbers(8, 32, dtype=BF16)]),
    refused("factors of float16", GROUPED, grouped, "must be None", antiquant_scale=[numbers(8, 32)]),
    refused("fewer places", BACK, back, "shape must be [6]", sorted_indices=ints(0, 1, 2)),
    refused("a shape to restore", BACK, back, "must be None", restore_shape=(3, 64)),
    refused("fewer weights", BACK, back, "each of 6 rows", probs=numbers(3, 1)),
    refused("another dtype", BACK, back, "dtype must be permuted_tokens's", probs=numbers(3, 2, dtype=BF16)),
    refused("float32 weights", BACK, back, "dtype must be Float16", probs=numbers(3, 2, dtype=FLOAT)),
    refused("a row twice", BACK, back, "0 to 5 once", sorted_indices=ints(3, 0, 1, 4, 5, 3)),
    refused("a row behind the last", BACK, back, "0 to 5 once", sorted_indices=ints(3, 0, 1, 4, 5, 6)),
    refused("int64 rows", BACK, back, "dtype must be Int32", False, sorted_indices=counted(3, 0, 1, 4, 5, 2)),
    refused("padded", BACK, back, "must be False", False, padded_mode=True),
)
