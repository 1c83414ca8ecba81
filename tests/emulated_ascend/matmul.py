"""Products of 16-bit matrices: summed in float32, rounded once."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor

from tests.emulated_ascend.host import floats, tensor
from tests.emulated_ascend.operator import HALF, Operator


class MatMul(Operator):
    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        self.transpose_a, self.transpose_b = transpose_a, transpose_b

    def compute(self, input: Any, mat2: Any) -> Tensor:
        self.constant(transpose_a=False, transpose_b=(False, True))
        self.tensor("input", input, HALF, 2)
        self.tensor("mat2", mat2, HALF, 2)
        self.same_dtype("mat2", mat2, "input", input)
        inner = mat2.shape[1 if self.transpose_b else 0]
        self.require(input.shape[1] == inner, "input", input, f"its width must be that of mat2, {inner}")
        right = floats(mat2)
        return tensor(floats(input) @ (right.T if self.transpose_b else right), input.dtype)
