"""One product for each expert, over its rows."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import Array, array, floats, tensor
from tests.emulated_ascend.operator import CHIP, HALF, Operator


class GroupedMatmulV4(Operator):
    def compute(
        self,
        x: Any,
        weight: Any,
        bias: Any = None,
        scale: Any = None,
        offset: Any = None,
        antiquant_scale: Any = None,
        antiquant_offset: Any = None,
        pre_token_scale: Any = None,
        group_list: Any = None,
        activation_input: Any = None,
        activation_quant_scale: Any = None,
        activation_quant_offset: Any = None,
        split_item: int = 0,
        group_type: int = -1,
        group_list_type: int = 0,
        act_type: int = 0,
        output_dtype: Any = None,
    ) -> tuple[Tensor]:
        """x [[M, in]], weight [[E, in, out]] -> [[M, out]]. Rows behind those of the last expert are NaN: a kernel
        leaves what was there. int8 on both sides: (x @ weight) * scale * pre_token_scale; int8 beside 16 bits:
        x @ ((weight + antiquant_offset) * antiquant_scale). bias [[E, out]] is added, float32 beside bfloat16."""
        self.absent(offset=offset)
        self.absent(activation_input=activation_input, activation_quant_scale=activation_quant_scale)
        self.absent(activation_quant_offset=activation_quant_offset, output_dtype=output_dtype)
        for name, came, needed in (
            ("split_item", split_item, 3),
            ("group_type", group_type, 0),
            ("act_type", act_type, 0),
        ):
            self.require(came == needed, name, came, f"it must be {needed}")
        rows, experts = self._only("x", x), self._only("weight", weight)
        kinds = [isinstance(it, Tensor) and it.dtype == ms.int8 for it in (rows, experts)]
        self._operands(rows, experts, kinds)
        quantised, widened = kinds[0], kinds[1] and not kinds[0]
        factors = self._scales(rows, experts, scale, pre_token_scale, quantised)
        matrices = self._matrices(experts, antiquant_scale, antiquant_offset, rows, widened)
        shifts = None if bias is None else self._bias(bias, rows, experts)
        ends = self._ends(rows, experts, group_list, group_list_type)
        values = rows.asnumpy() if quantised else floats(rows)
        result = np.full((rows.shape[0], experts.shape[2]), np.nan, np.float32)
        for expert, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            part = slice(start, end)
            exact = np.float64 if quantised else np.float32
            product = values[part].astype(exact) @ matrices[expert].astype(exact)
            result[part] = product if factors is None else product * factors[0][expert] * factors[1][part, None]
            result[part] += 0 if shifts is None else shifts[expert]
        return (tensor(result, ms.bfloat16 if quantised else rows.dtype),)

    def _only(self, name: str, came: Any) -> Any:
        alone = isinstance(came, (list, tuple)) and len(came) == 1
        self.require(alone, name, came, "it must be a list of one tensor")
        return came[0]

    def _operands(self, x: Any, weight: Any, integers: list[bool]) -> None:
        self.tensor("x", x, (ms.int8,) if integers[0] else HALF, 2)
        self.tensor("weight", weight, (ms.int8,) if any(integers) else HALF, 3)
        if not integers[1]:
            self.same_dtype("weight", weight, "x", x)
        rule = f"it must be [E, in, out], not transposed, in being x's width, {x.shape[1]}"
        self.require(weight.shape[1] == x.shape[1], "weight", weight, rule)
        if CHIP.is_310p:
            aligned = weight.shape[0] % 8 == 0 and weight.shape[1] % 16 == 0 and weight.shape[2] % 16 == 0
            self.require(aligned, "weight", weight, "on 310P E must divide by 8, in and out by 16")

    def _scales(
        self, x: Any, weight: Any, scale: Any, pre_token_scale: Any, quantised: bool
    ) -> tuple[Array, Array] | None:
        """-> of each expert [E, out], and of each row [M]"""
        if not quantised:
            self.absent(scale=scale, pre_token_scale=pre_token_scale)
            return None
        of_experts, of_rows = self._only("scale", scale), self._only("pre_token_scale", pre_token_scale)
        self.tensor("scale", of_experts, (ms.bfloat16,), 2)
        self.shape("scale", of_experts, weight.shape[0], weight.shape[2])
        self.tensor("pre_token_scale", of_rows, (ms.float32,), 1)
        self.shape("pre_token_scale", of_rows, x.shape[0])
        return floats(of_experts), floats(of_rows)

    def _matrices(self, weight: Any, scale: Any, offset: Any, x: Any, widened: bool) -> Array:
        """-> what x is multiplied with [E, in, out]"""
        if not widened:
            self.absent(antiquant_scale=scale, antiquant_offset=offset)
            return weight.asnumpy() if weight.dtype == ms.int8 else floats(weight)
        numbers = self._only("antiquant_scale", scale), self._only("antiquant_offset", offset)
        for name, came in zip(("antiquant_scale", "antiquant_offset"), numbers, strict=True):
            self.tensor(name, came, HALF, 2)
            self.same_dtype(name, came, "x", x)
            self.shape(name, came, weight.shape[0], weight.shape[2])
        scales, offsets = (floats(it)[:, None] for it in numbers)
        matrices: Array = (weight.asnumpy() + offsets) * scales
        return matrices

    def _bias(self, bias: Any, x: Any, weight: Any) -> Array:
        """-> [E, out]"""
        shifts = self._only("bias", bias)
        self.require(weight.dtype in HALF, "bias", shifts, "it must be None beside integers: no decoder passes it")
        self.tensor("bias", shifts, (ms.float32 if x.dtype == ms.bfloat16 else ms.float16,), 2)
        self.shape("bias", shifts, weight.shape[0], weight.shape[2])
        return floats(shifts)

    def _ends(self, x: Any, weight: Any, group_list: Any, group_list_type: int) -> list[int]:
        """-> where the rows of each expert end"""
        self.require(group_list_type in (0, 1), "group_list_type", group_list_type, "it must be 0 (ends) or 1 (counts)")
        self.tensor("group_list", group_list, (ms.int64,), 1)
        self.shape("group_list", group_list, weight.shape[0])
        given = array(group_list)
        counts = given if group_list_type else np.diff(given, prepend=0)
        self.require(counts.min() >= 0, "group_list", given.tolist(), "no expert has fewer rows than none")
        rule = f"it must not count more than x's {x.shape[0]} rows"
        self.require(counts.sum() <= x.shape[0], "group_list", given.tolist(), rule)
        return [int(end) for end in counts.cumsum()]
