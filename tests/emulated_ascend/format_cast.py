"""Other layouts in memory, which 310P wants for weights and caches."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Tensor

from tests.emulated_ascend.host import array, tensor
from tests.emulated_ascend.operator import CHIP, Operator

NZ = 29


class FormatCast(Operator):
    def compute(self, input: Any, acl_format: int) -> Tensor:
        """The numbers stay in their places as far as one can see."""
        self.require(CHIP.is_310p, "acl_format", acl_format, f"{CHIP.name} takes tensors as they are")
        self.require(acl_format == NZ, "acl_format", acl_format, f"it must be {NZ}, FRACTAL_NZ")
        self.tensor("input", input, (ms.float16, ms.int8), 2, 3)
        aligned = input.shape[-1] * array(input).itemsize % 32 == 0
        self.require(aligned, "input", input, "its last axis must be a multiple of 32 bytes")
        return tensor(array(input), input.dtype)


format_cast = FormatCast()
