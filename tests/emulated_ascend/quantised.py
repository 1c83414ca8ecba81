"""Products with int8 weights."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import Array, Floats, array, floats, tensor
from tests.emulated_ascend.operator import CHIP, HALF, Operator

GROUP = 32
"""Sizes of groups are multiples of it."""


class QuantV2(Operator):
    def compute(
        self,
        x: Any,
        scale: Any,
        offset: Any,
        sqrt_mode: bool = False,
        rounding_mode: str = "ROUND",
        dst_type: Any = ms.int8,
    ) -> Tensor:
        """-> int8: round(scale * x + offset)"""
        self.require(not sqrt_mode, "sqrt_mode", sqrt_mode, "it must be False")
        self.require(rounding_mode == "ROUND", "rounding_mode", rounding_mode, "it must be 'ROUND'")
        self.require(dst_type == ms.int8, "dst_type", dst_type, "it must be Int8")
        self.tensor("x", x, (*HALF, ms.float32), 2)
        for name, came in (("scale", scale), ("offset", offset)):
            self.tensor(name, came, (*HALF, ms.float32), 1)
            self.same_dtype(name, came, "x", x)
            width = x.shape[1]
            self.require(came.shape[0] in (1, width), name, came, f"it must have one number, or x's {width}")
        return to_int8(floats(x) * floats(scale) + floats(offset))


class DynamicQuantExt(Operator):
    def compute(self, x: Any, smooth_scales: Any = None) -> tuple[Tensor, Tensor]:
        """-> int8, and float32 scales of each row"""
        self.tensor("x", x, HALF, 2)
        self.absent(smooth_scales=smooth_scales)
        values = floats(x)
        scales = np.abs(values).max(-1) / np.float32(127)
        return to_int8(values / np.where(scales, scales, 1)[:, None]), tensor(scales, ms.float32)


def to_int8(values: Floats) -> Tensor:
    return tensor(np.clip(np.rint(values), -128, 127), ms.int8)


class QuantBatchMatmul(Operator):
    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False, dtype: Any = ms.float16) -> None:
        self.transpose_x1, self.transpose_x2, self.dtype = transpose_x1, transpose_x2, dtype

    def compute(
        self, x1: Any, x2: Any, scale: Any, offset: Any = None, bias: Any = None, pertokenScaleOptional: Any = None
    ) -> Tensor:
        """(x1 @ x2 + bias) * scale of each column * scale of each row"""
        self.constant(transpose_x1=False, dtype=HALF)
        self.absent(offset=offset)
        self._operands(x1, x2)
        outputs = x2.shape[0 if self.transpose_x2 else 1]
        columns = self._scale(scale, outputs, pertokenScaleOptional is not None)
        right = array(x2).astype(np.float64)  # exact: float32 has 24 bits
        sums = array(x1).astype(np.float64) @ (right.T if self.transpose_x2 else right)
        if bias is not None:
            self.absent(pertokenScaleOptional=pertokenScaleOptional)
            self.tensor("bias", bias, (ms.int32,), 1)
            self.shape("bias", bias, outputs)
            sums = sums + array(bias)
        result = sums.astype(np.float32) * columns
        if pertokenScaleOptional is not None:
            self.tensor("pertokenScaleOptional", pertokenScaleOptional, (ms.float32,), 1)
            self.shape("pertokenScaleOptional", pertokenScaleOptional, x1.shape[0])
            result = result * floats(pertokenScaleOptional)[:, None]
        return tensor(result, self.dtype)

    def _operands(self, x1: Any, x2: Any) -> None:
        self.tensor("x1", x1, (ms.int8,), 2)
        self.tensor("x2", x2, (ms.int8,), 2)
        inner = x2.shape[1 if self.transpose_x2 else 0]
        self.require(x1.shape[1] == inner, "x1", x1, f"its width must be that of x2, {inner}")

    def _scale(self, scale: Any, outputs: int, of_rows_too: bool) -> Array:
        if CHIP.is_310p and not of_rows_too:
            self.tensor("scale", scale, (ms.int64,), 1)
            self.shape("scale", scale, outputs)
            return array(scale).astype(np.uint32).view(np.float32)  # the bits of a float32
        self.tensor("scale", scale, (ms.float32, ms.bfloat16), 1)
        fits = scale.dtype != ms.bfloat16 or self.dtype == ms.bfloat16
        self.require(fits, "scale", scale, f"for results in {self.dtype} it must be Float32")
        self.shape("scale", scale, outputs)
        return floats(scale)


class WeightQuantBatchMatmul(Operator):
    def __init__(
        self, transpose_x: bool = False, transpose_weight: bool = False, antiquant_group_size: int = 0
    ) -> None:
        self.transpose_x, self.transpose_weight = transpose_x, transpose_weight
        self.antiquant_group_size = antiquant_group_size

    def compute(
        self,
        x: Any,
        weight: Any,
        antiquant_scale: Any,
        antiquant_offset: Any = None,
        quant_scale: Any = None,
        quant_offset: Any = None,
        bias: Any = None,
    ) -> Tensor:
        """x @ ((weight + offset) * scale), both of each column, or of each group of its rows"""
        self.constant(transpose_x=False)
        self.absent(quant_scale=quant_scale, quant_offset=quant_offset, bias=bias)
        self.tensor("x", x, HALF, 2)
        self.tensor("weight", weight, (ms.int8,), 2)
        inner, outputs = reversed(weight.shape) if self.transpose_weight else weight.shape
        self.require(x.shape[1] == inner, "x", x, f"its width must be that of weight, {inner}")
        scale = self._factors("antiquant_scale", antiquant_scale, x, inner, outputs)
        shift = np.zeros((), np.float32)
        if antiquant_offset is not None:
            shift = self._factors("antiquant_offset", antiquant_offset, x, inner, outputs)
        columns = array(weight).astype(np.float32)
        return tensor(floats(x) @ (((columns.T if self.transpose_weight else columns) + shift) * scale), x.dtype)

    def _factors(self, name: str, came: Any, x: Any, inner: int, outputs: int) -> Floats:
        """-> [in or 1, out]"""
        self.tensor(name, came, HALF, 1, 2)
        self.same_dtype(name, came, "x", x)
        size = self.antiquant_group_size
        if not size:
            self.shape(name, came, outputs)
            return floats(came)[None]
        fits = size % GROUP == 0 and 0 < size < inner
        rule = f"it must be a multiple of {GROUP} below {inner}"
        self.require(fits, "antiquant_group_size", size, rule)
        groups = -(-inner // size)
        self.shape(name, came, *((outputs, groups) if self.transpose_weight else (groups, outputs)))
        values = floats(came).T if self.transpose_weight else floats(came)
        return np.repeat(values, size, axis=0)[:inner]
