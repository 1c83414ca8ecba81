"""Layers divided by the tokens of the vocabulary."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.layers.collectives import AllGather, AllReduce
from msx_core.mindspore.layers.shards import ShardedCell, check_shape
from msx_core.mindspore.loading import fill
from msx_core.mindspore.parallel import Parallel
from msx_core.mindspore.weights import Weights


class _Vocabulary(ShardedCell):
    """`vocabulary` need not be divisible by the number of ranks: the last shard is padded with zeros."""

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
        check_shape(weights, name, (self.vocabulary, self.width))
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
        rows = self.lookup(ops.clamp(local, 0, self.rows - 1))
        return self.reduce(rows * ops.expand_dims(mine, -1).astype(rows.dtype))

    def lookup(self, ids: Any) -> Any:
        """Rows of this rank's part."""
        return ops.gather(self.weight, ids, 0)


class VocabParallelHead(_Vocabulary):
    """x [..., width] → logits [..., vocabulary] on every rank.

    `source="model.embed_tokens"` ties it to the embedding's weight in the file.
    """

    def __init__(self, vocabulary: int, width: int, parallel: Parallel, **options: Any) -> None:
        super().__init__(vocabulary, width, parallel, **options)
        self.gather = AllGather(parallel)
        self.matmul, self.padded = ops.MatMul(), self.rows * parallel.tp_size > vocabulary

    def construct(self, x: Any) -> Any:
        logits = self.gather(self.matmul(ops.reshape(x, (-1, self.width)), self.weight))
        if self.padded:  # on a CPU a slice, even of all, is copied element by element
            logits = logits[:, : self.vocabulary]
        return ops.reshape(logits, (*x.shape[:-1], self.vocabulary))

    def _layout(self, shape: tuple[int, int]) -> tuple[int, int]:
        return shape[1], shape[0]

    def _layout_of(self, array: Any) -> Any:
        return array.T
