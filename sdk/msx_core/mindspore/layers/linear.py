"""Linear layers, divided by their outputs or by their inputs."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.layers.collectives import AllGather, AllReduce
from msx_core.mindspore.layers.shards import ShardedCell, Stored, check_divisible, check_shape
from msx_core.mindspore.loading import fill
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.weights import Weights


class _Linear(ShardedCell):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        parallel: Parallel,
        *,
        bias: bool = True,
        source: str | None = None,
        stored: Stored = "out_in",
        dtype: Any = ms.float32,
    ) -> None:
        super().__init__(parallel, source)
        self.full = (in_features, out_features)
        self.stored = stored
        rows, columns = self.shard
        self.local = (rows.stop - rows.start, columns.stop - columns.start)
        self.weight = Parameter(initializer("zeros", self.local, dtype), name="weight")
        self.spare = 0
        self.has_bias = bias
        if bias:
            self.bias = Parameter(initializer("zeros", (self.local[1],), dtype), name="bias")
        self.matmul, self.bias_add = ops.MatMul(), ops.BiasAdd()

    def widen(self, spare: int) -> None:
        """Before it is loaded: x has so many inputs more, behind the others, whose weights are 0 until they are set."""
        self.spare, self.local = spare, (self.local[0] + spare, self.local[1])
        self.weight = Parameter(initializer("zeros", self.local, self.weight.dtype), name=self.weight.name)

    @property
    def shard(self) -> tuple[slice, slice]:
        """This rank's part of the inputs and of the outputs."""
        raise NotImplementedError

    def load_shard(self, weights: Weights, name: str) -> None:
        name = self.source or name
        rows, columns = self.shard
        flipped = self.stored == "out_in"
        check_shape(weights, f"{name}.weight", self.full[::-1] if flipped else self.full)
        array = weights.read(f"{name}.weight", *((columns, rows) if flipped else (rows, columns)))
        array = array.T if flipped else array
        fill(self.weight, np.pad(array, ((0, self.spare), (0, 0))) if self.spare else array)
        if self.has_bias:
            check_shape(weights, f"{name}.bias", self.full[1:])
            fill(self.bias, weights.read(f"{name}.bias", columns))

    def product(self, x: Any) -> Any:
        rows = ops.reshape(x, (-1, self.local[0]))
        return ops.reshape(self.matmul(rows, self.weight), (*x.shape[:-1], self.local[1]))

    def biased(self, y: Any) -> Any:
        """Add the bias by BiasAdd: in a graph on a CPU `y + self.bias` takes twice as long, and keeps four more buffers
        of y's size."""
        if self.bias.dtype == ms.float64:
            return y + self.bias  # BiasAdd has no such kernel
        rows = ops.reshape(y, (-1, self.local[1]))
        return ops.reshape(self.bias_add(rows, self.bias), y.shape)


class ColumnParallelLinear(_Linear):
    """x [..., in] → [..., out / tp_size], or with `gather` the whole [..., out] on every rank."""

    def __init__(
        self, in_features: int, out_features: int, parallel: Parallel, *, gather: bool = False, **options: Any
    ) -> None:
        check_divisible("out_features", out_features, parallel)
        super().__init__(in_features, out_features, parallel, **options)
        self.gather = AllGather(parallel) if gather else None

    @property
    def shard(self) -> tuple[slice, slice]:
        return slice(0, self.full[0]), self._part(self.full[1])

    def construct(self, x: Any) -> Any:
        y = self.product(x)
        if self.has_bias:
            y = self.biased(y)
        if self.gather is not None:
            y = self.gather(y)
        return y


class RowParallelLinear(_Linear):
    """x [..., in / tp_size], as a ColumnParallelLinear leaves it → [..., out], summed over the ranks."""

    def __init__(self, in_features: int, out_features: int, parallel: Parallel, **options: Any) -> None:
        check_divisible("in_features", in_features, parallel)
        super().__init__(in_features, out_features, parallel, **options)
        self.reduce = AllReduce(parallel)

    @property
    def shard(self) -> tuple[slice, slice]:
        return self._part(self.full[0]), slice(0, self.full[1])

    def construct(self, x: Any) -> Any:
        return self.summed(self.product(x))

    def summed(self, y: Any) -> Any:
        y = self.reduce(y)
        return self.biased(y) if self.has_bias else y  # once, not once a rank
