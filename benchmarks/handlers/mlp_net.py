"""A perceptron divided over the ranks of a tensor-parallel group, whose collectives are timed."""

from __future__ import annotations

import time
from typing import Any

import mindspore as ms
from mindspore import nn, ops

from msx_sdk.mindspore.layers import AllReduce, ColumnParallelLinear, RowParallelLinear
from msx_sdk.mindspore.parallel import Parallel


class TimedAllReduce(AllReduce):
    """`seconds`, of all its eager calls; it waits for what was launched before, which is not the collective's."""

    seconds = 0.0

    def __call__(self, *inputs: Any) -> Any:
        if self.size == 1:
            return super().__call__(*inputs)
        ms.runtime.synchronize()
        began = time.perf_counter()
        reduced = super().__call__(*inputs)
        ms.runtime.synchronize()
        self.seconds += time.perf_counter() - began
        return reduced


class Block(nn.Cell):  # type: ignore[misc]
    def __init__(self, width: int, hidden: int, parallel: Parallel) -> None:
        super().__init__()
        self.up = ColumnParallelLinear(width, hidden, parallel, stored="in_out")
        self.down = RowParallelLinear(hidden, width, parallel, stored="in_out")
        self.down.reduce = TimedAllReduce(parallel)

    def construct(self, x: Any) -> Any:
        return x + self.down(ops.relu(self.up(x)))


class Mlp(nn.Cell):  # type: ignore[misc]
    def __init__(self, width: int, hidden: int, blocks: int, parallel: Parallel) -> None:
        super().__init__()
        self.blocks = nn.CellList([Block(width, hidden, parallel) for _ in range(blocks)])

    @property
    def collective_seconds(self) -> float:
        return float(sum(block.down.reduce.seconds for block in self.blocks))

    def construct(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x
