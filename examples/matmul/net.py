"""y = -(x · w), with w [96, 16] cut into as many groups of columns as there are ranks."""

from typing import Any

from mindspore import nn, ops

from msx_sdk.mindspore.layers import ColumnParallelLinear
from msx_sdk.mindspore.parallel import Parallel


class Net(nn.Cell):  # type: ignore[misc]
    def __init__(self, parallel: Parallel) -> None:
        super().__init__()
        self.matmul = ColumnParallelLinear(96, 16, parallel, bias=False, gather=True, stored="in_out")

    def construct(self, x: Any) -> Any:
        return ops.neg(self.matmul(x))
