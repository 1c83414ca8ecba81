"""Layers whose weights are divided over the ranks of a tensor-parallel group.

They compute the same on one rank as on many, eagerly and in graphs. Weights lie as [in, out], which is faster on a CPU;
files may have them as [out, in] (Hugging Face, `nn.Dense`). Importing this module imports MindSpore: do so after
`init_parallel`, in `build` or `layers`, or in a module imported there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore import collectives
from msx_sdk.mindspore.loading import fill
from msx_sdk.mindspore.parallel import Parallel
from msx_sdk.mindspore.weights import Weights, part

Stored = Literal["out_in", "in_out"]
"""How a file lays out a weight."""


class _Collective(nn.Cell):  # type: ignore[misc]
    """Graphs inline `construct`, so `__call__` counts the eager calls only; `counted` does those in graphs."""

    kind = ""

    def __init__(self, parallel: Parallel) -> None:
        super().__init__()
        self.size = parallel.tp_size
        self.group = parallel.tp_group

    def __call__(self, *inputs: Any) -> Any:
        if self.size > 1:
            collectives.count(self.kind, self.group)
        return super().__call__(*inputs)


class AllReduce(_Collective):
    """The sum over the ranks of the tensor-parallel group. Floats only."""

    kind = "all_reduce"

    def __init__(self, parallel: Parallel) -> None:
        super().__init__(parallel)
        if self.size > 1:
            self.reduce = ops.AllReduce(group=self.group)

    def construct(self, x: Any) -> Any:
        if self.size > 1:
            x = self.reduce(x)
        return x


class AllGather(_Collective):
    """Joins the ranks' tensors, of the same shape, along the last axis. Floats only."""

    kind = "all_gather"

    def __init__(self, parallel: Parallel) -> None:
        super().__init__(parallel)
        self.index = parallel.tp_rank
        # MCCL gathers in the group of all ranks only; elsewhere a sum of what is padded with zeros does the same.
        self.native = parallel.target == "Ascend" or parallel.tp_group == parallel.world_group
        if self.size > 1:
            self.gather = ops.AllGather(group=self.group) if self.native else ops.AllReduce(group=self.group)
        self.join = ops.Concat(-1)
        self.split = ops.Split(0, self.size)

    def construct(self, x: Any) -> Any:
        if self.size > 1:
            if self.native:
                x = self.join(self.split(self.gather(x)))
            else:
                x = self.gather(self.join(self.padded(x)))
        return x

    def padded(self, x: Any) -> Any:
        zeros = ops.zeros_like(x)
        parts: Any = ()
        for rank in range(self.size):
            parts = (*parts, x if rank == self.index else zeros)
        return parts


class _Sharded(nn.Cell):  # type: ignore[misc]
    """`source` is the layer's name in the file, where it is not its place in the network."""

    def __init__(self, parallel: Parallel, source: str | None) -> None:
        super().__init__()
        self.parallel, self.source = parallel, source

    def load_shard(self, weights: Weights, name: str) -> None:
        """Read this rank's part; `name` is the layer's place in the network. Raises HandlerLoadError."""
        raise NotImplementedError

    def _part(self, size: int) -> slice:
        return part(size, self.parallel.tp_size, self.parallel.tp_rank)


class _Linear(_Sharded):
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
        self.has_bias = bias
        if bias:
            self.bias = Parameter(initializer("zeros", (self.local[1],), dtype), name="bias")
        self.matmul, self.bias_add = ops.MatMul(), ops.BiasAdd()

    @property
    def shard(self) -> tuple[slice, slice]:
        """This rank's part of the inputs and of the outputs."""
        raise NotImplementedError

    def load_shard(self, weights: Weights, name: str) -> None:
        name = self.source or name
        rows, columns = self.shard
        flipped = self.stored == "out_in"
        _check_shape(weights, f"{name}.weight", self.full[::-1] if flipped else self.full)
        array = weights.read(f"{name}.weight", *((columns, rows) if flipped else (rows, columns)))
        fill(self.weight, array.T if flipped else array)
        if self.has_bias:
            _check_shape(weights, f"{name}.bias", self.full[1:])
            fill(self.bias, weights.read(f"{name}.bias", columns))

    def product(self, x: Any) -> Any:
        rows = ops.reshape(x, (-1, self.local[0]))
        return ops.reshape(self.matmul(rows, self.weight), (*x.shape[:-1], self.local[1]))

    def biased(self, y: Any) -> Any:
        """In a graph on a CPU `y + self.bias` takes twice as long, and keeps four more buffers of y's size."""
        if self.bias.dtype == ms.float64:
            return y + self.bias  # BiasAdd has no such kernel
        rows = ops.reshape(y, (-1, self.local[1]))
        return ops.reshape(self.bias_add(rows, self.bias), y.shape)


class ColumnParallelLinear(_Linear):
    """x [..., in] → [..., out / tp_size], or with `gather` the whole [..., out] on every rank."""

    def __init__(
        self, in_features: int, out_features: int, parallel: Parallel, *, gather: bool = False, **options: Any
    ) -> None:
        _check_divisible("out_features", out_features, parallel)
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
        _check_divisible("in_features", in_features, parallel)
        super().__init__(in_features, out_features, parallel, **options)
        self.reduce = AllReduce(parallel)

    @property
    def shard(self) -> tuple[slice, slice]:
        return self._part(self.full[0]), slice(0, self.full[1])

    def construct(self, x: Any) -> Any:
        y = self.reduce(self.product(x))
        if self.has_bias:
            y = self.biased(y)  # once, not once a rank
        return y


class _Vocabulary(_Sharded):
    """`vocabulary` need not be divisible: the last shard is filled up with zeros."""

    def __init__(
        self, vocabulary: int, width: int, parallel: Parallel, *, source: str | None = None, dtype: Any = ms.float32
    ) -> None:
        super().__init__(parallel, source)
        self.vocabulary, self.width = vocabulary, width
        self.rows = -(-vocabulary // parallel.tp_size)
        self.first = self.rows * parallel.tp_rank
        self.weight = Parameter(initializer("zeros", self._layout((self.rows, width)), dtype), name="weight")

    def load_shard(self, weights: Weights, name: str) -> None:
        import numpy as np

        name = f"{self.source or name}.weight"
        _check_shape(weights, name, (self.vocabulary, self.width))
        array = weights.read(name, self._part(self.vocabulary))
        missing = self.rows - array.shape[0]
        fill(self.weight, self._layout_of(np.pad(array, ((0, missing), (0, 0))) if missing else array))

    def _layout(self, shape: tuple[int, int]) -> tuple[int, int]:
        return shape

    def _layout_of(self, array: Any) -> Any:
        return array


class VocabParallelEmbedding(_Vocabulary):
    """ids [...] of integers → [..., width]. The file has the weight as [vocabulary, width]."""

    def __init__(self, vocabulary: int, width: int, parallel: Parallel, **options: Any) -> None:
        super().__init__(vocabulary, width, parallel, **options)
        self.reduce = AllReduce(parallel)

    def construct(self, ids: Any) -> Any:
        local = ids - self.first
        mine = ops.logical_and(local >= 0, local < self.rows)
        rows = ops.gather(self.weight, ops.clamp(local, 0, self.rows - 1), 0)
        return self.reduce(rows * ops.expand_dims(mine, -1).astype(rows.dtype))


class VocabParallelHead(_Vocabulary):
    """x [..., width] → logits [..., vocabulary] on every rank.

    `source="model.embed_tokens"` ties it to the embedding's weight in the file.
    """

    def __init__(self, vocabulary: int, width: int, parallel: Parallel, **options: Any) -> None:
        super().__init__(vocabulary, width, parallel, **options)
        self.gather = AllGather(parallel)
        self.matmul = ops.MatMul()

    def construct(self, x: Any) -> Any:
        rows = ops.reshape(x, (-1, self.width))
        logits = self.gather(self.matmul(rows, self.weight))[:, : self.vocabulary]
        return ops.reshape(logits, (*x.shape[:-1], self.vocabulary))

    def _layout(self, shape: tuple[int, int]) -> tuple[int, int]:
        return shape[1], shape[0]

    def _layout_of(self, array: Any) -> Any:
        return array.T


def counted(function: Callable[..., Any], cell: Any) -> Callable[..., Any]:
    """A function that runs `cell` in a graph, such as `ms.jit(cell.construct)`, counting the cell's collectives.

    Nothing of a graph is seen from Python: every collective inside is taken to run once a call.
    """
    found: Counter[tuple[str, str]] = Counter()
    for _, inner in cell.cells_and_names():
        if isinstance(inner, _Collective) and inner is not cell:
            found[inner.kind, inner.group] += 1
    return collectives.counting(function, found)


def _check_divisible(key: str, size: int, parallel: Parallel) -> None:
    if size % parallel.tp_size:
        raise HandlerLoadError(f"{key}: {size} cannot be divided evenly over {parallel.tp_size} tensor-parallel ranks")


def _check_shape(weights: Weights, name: str, wanted: tuple[int, ...]) -> None:
    if weights.shape(name) != wanted:
        raise HandlerLoadError(f"{name}: the file has the shape {weights.shape(name)}, the network {wanted}")
