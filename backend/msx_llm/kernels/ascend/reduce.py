"""Sums over the ranks of a tensor-parallel group, in 16 bits."""

from __future__ import annotations

from typing import Any

from msx_llm.kernels.ascend import operators
from msx_sdk.mindspore.layers import AllReduce
from msx_sdk.mindspore.parallel import Parallel


class Reduce(AllReduce):
    """`AllReduce` of HCCL, counted like the SDK's own."""

    def __init__(self, parallel: Parallel) -> None:
        super().__init__(parallel)
        if self.size > 1:
            self.reduce = operators.AllReduce(group=self.group)

    def construct(self, x: Any) -> Any:
        return self.reduce(x) if self.size > 1 else x
