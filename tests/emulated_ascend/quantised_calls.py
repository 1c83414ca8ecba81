"""Calls of the operators of int8: 3 tokens, 64 inputs, 32 outputs."""

from __future__ import annotations

from functools import partial
from typing import Any

import mindspore as ms

from tests.emulated_ascend.calls import BF16, Case
from tests.emulated_ascend.inputs import Arguments, ints, numbers

FLOAT, INT8 = ms.float32, ms.int8
HALF_RESULT = {"transpose_x2": True, "dtype": ms.float16}
BF16_RESULT = {"transpose_x2": True, "dtype": BF16}
ROWS = {"transpose_weight": True}
GROUPS = {"antiquant_group_size": 32}


def quantise(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """ModelSlim's one scale."""
    x = numbers(3, 64, dtype=dtype)
    return {"x": x, "scale": numbers(1, dtype=dtype, scale=30), "offset": ints(3, dtype=dtype)} | changes


def by_row(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    return {"x": numbers(3, 64, dtype=dtype)} | changes


def fixed(**changes: Any) -> Arguments:
    """One scale for all tokens."""
    operands = {"x1": numbers(3, 64, dtype=INT8, scale=40), "x2": numbers(32, 64, dtype=INT8, scale=40)}
    return operands | {"scale": numbers(32, dtype=FLOAT, scale=1e-3), "bias": ints(*range(-16, 16))} | changes


def dynamic(dtype: Any = FLOAT, **changes: Any) -> Arguments:
    scales = {"scale": numbers(32, dtype=dtype, scale=1e-3), "pertokenScaleOptional": numbers(3, dtype=FLOAT)}
    return fixed() | {"bias": None} | scales | changes


def narrow(dtype: Any = ms.float16, **changes: Any) -> Arguments:
    """Weights [in, out]."""
    weight = {"weight": numbers(64, 32, dtype=INT8, scale=40), "antiquant_scale": numbers(32, dtype=dtype, scale=0.01)}
    return {"x": numbers(3, 64, dtype=dtype), **weight, "antiquant_offset": ints(*range(32), dtype=dtype)} | changes


def turned(**changes: Any) -> Arguments:
    return narrow(weight=numbers(32, 64, dtype=INT8, scale=40)) | changes


def in_groups(**changes: Any) -> Arguments:
    return narrow(antiquant_scale=numbers(2, 32, scale=0.01), antiquant_offset=None) | changes


ACCEPTED = (
    Case("float16", "QuantV2", quantise),
    Case("bfloat16", "QuantV2", partial(quantise, BF16)),
    Case("a scale of each input", "QuantV2", partial(quantise, scale=numbers(64), offset=numbers(64))),
    Case("float16", "DynamicQuantExt", by_row),
    Case("bfloat16", "DynamicQuantExt", partial(by_row, BF16)),
    Case("one scale for tokens", "QuantBatchMatmul", fixed, HALF_RESULT),
    Case("one scale for tokens, bfloat16", "QuantBatchMatmul", fixed, BF16_RESULT),
    Case("a scale of each token", "QuantBatchMatmul", dynamic, HALF_RESULT),
    Case("a scale of each token, bfloat16", "QuantBatchMatmul", partial(dynamic, BF16), BF16_RESULT),
    Case("[in, out]", "WeightQuantBatchMatmul", narrow),
    Case("[in, out] in bfloat16", "WeightQuantBatchMatmul", partial(narrow, BF16)),
    Case("[out, in]", "WeightQuantBatchMatmul", turned, ROWS),
    Case("groups", "WeightQuantBatchMatmul", in_groups, GROUPS),
)


def refused(
    name: str, operator: str, arguments: Any, says: str, front_end: bool = True, attributes: Any = None, **changes: Any
) -> Case:
    return Case(name, operator, partial(arguments, **changes), attributes or {}, says, front_end)


def product(name: str, says: str, front_end: bool = True, attributes: Any = None, **changes: Any) -> Case:
    return refused(name, "QuantBatchMatmul", fixed, says, front_end, attributes or HALF_RESULT, **changes)


Q, R, W = "QuantV2", "DynamicQuantExt", "WeightQuantBatchMatmul"

REFUSED = (
    refused("another dtype of scale", Q, quantise, "dtype must be x's", scale=numbers(1, dtype=BF16)),
    refused("int8 offset", Q, quantise, "dtype must be Float16", offset=ints(3, dtype=INT8)),
    refused("another width", Q, quantise, "x's 64", scale=numbers(32)),
    refused("offsets of another width", Q, quantise, "x's 64", offset=ints(3, 3, dtype=ms.float16)),
    refused("another dtype of offset", Q, quantise, "dtype must be x's", offset=ints(3, dtype=BF16)),
    refused("uint8", Q, quantise, "must be Int8", False, dst_type=ms.uint8),
    refused("sqrt_mode", Q, quantise, "must be False", sqrt_mode=True),
    refused("floor", Q, quantise, "must be 'ROUND'", rounding_mode="FLOOR"),
    refused("float32", R, by_row, "dtype must be Float16", dtype=FLOAT),
    refused("smooth scales", R, by_row, "must be None", smooth_scales=numbers(64)),
    product("float16 inputs", "dtype must be Int8", False, x1=numbers(3, 64)),
    product("another width", "that of x2, 64", False, x1=numbers(3, 32, dtype=INT8)),
    product("[in, out]", "that of x2, 32", False, x2=numbers(64, 32, dtype=INT8)),
    product("fewer scales", "shape must be [32]", scale=numbers(31, dtype=FLOAT)),
    product("float16 scales", "dtype must be Float32", False, scale=numbers(32)),
    product("bfloat16 scales of float16", "must be Float32", scale=numbers(32, dtype=BF16)),
    product("310P's scales", "dtype must be Float32", scale=ints(*range(32), dtype=ms.int64)),
    product("a float bias", "dtype must be Int32", False, bias=numbers(32, dtype=FLOAT)),
    product("fewer biases", "shape must be [32]", bias=ints(1)),
    product("an offset", "must be None", offset=numbers(32, dtype=FLOAT)),
    product("scales of fewer tokens", "shape must be [3]", bias=None, pertokenScaleOptional=numbers(2, dtype=FLOAT)),
    product("a bias and scales of tokens", "must be None", pertokenScaleOptional=numbers(3, dtype=FLOAT)),
    product("a turned input", "must be False", False, attributes={**HALF_RESULT, "transpose_x1": True}),
    product("float32 results", "must be", attributes={**HALF_RESULT, "dtype": FLOAT}),
    refused("float32", W, narrow, "dtype must be Float16", False, dtype=FLOAT),
    refused("float16 weights", W, narrow, "dtype must be Int8", False, weight=numbers(64, 32)),
    refused("another width", W, narrow, "that of weight, 64", False, x=numbers(3, 32)),
    refused("scales of another dtype", W, narrow, "dtype must be x's", False, antiquant_scale=numbers(32, dtype=BF16)),
    refused("scales of inputs", W, narrow, "shape must be [32]", antiquant_scale=numbers(64)),
    refused(
        "offsets of another dtype", W, narrow, "dtype must be x's", False, antiquant_offset=numbers(32, dtype=BF16)
    ),
    refused("offsets of inputs", W, narrow, "shape must be [32]", antiquant_offset=numbers(64)),
    refused("a turned input", W, narrow, "must be False", False, attributes={"transpose_x": True}),
    refused("results in int8", W, narrow, "must be None", quant_scale=numbers(32)),
    refused("groups of 16", W, in_groups, "multiple of 32", attributes={"antiquant_group_size": 16}),
    refused("one group", W, in_groups, "below 64", attributes={"antiquant_group_size": 64}),
    refused(
        "groups of outputs", W, in_groups, "shape must be [2, 32]", attributes=GROUPS, antiquant_scale=numbers(32, 2)
    ),
    refused("a bias", W, narrow, "must be None", bias=numbers(32)),
)
