"""The network of an embedding model as a function of texts, with one graph for each shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from msx_llm.embedding.pooling import Array, Pooling
from msx_llm.embedding.shapes import BatchShape

HIDDEN = -3e4
"""Added to the scores of padding: the softmax becomes 0, and half precision can hold it."""


class PooledNetwork(nn.Cell):  # type: ignore[misc]
    """ids [B, P], mask [B, 1, 1, P] additive, weights [B, K, P] → weighted sums [B, K, hidden], largest [B, hidden]

    `segments` [B, P], of pairs alone, are 1 in the second text."""

    def __init__(self, body: Any, pooling: Pooling) -> None:
        super().__init__()
        self.body = body
        self.sums, self.largest = bool(pooling.sums), "max" in pooling.modes
        self.product = ops.BatchMatMul()

    def construct(self, ids: Any, mask: Any, weights: Any, segments: Any = None) -> Any:
        states = self.body(ids, mask) if segments is None else self.body(ids, mask, segments)
        sums = self.product(weights, states) if self.sums else weights
        largest = (states + mask.reshape((*ids.shape, 1))).max(axis=1) if self.largest else mask
        return sums, largest


class EmbeddingNetwork:
    """`body` is a cell: ids [B, P], mask [B, 1, 1, P] additive → the states [B, P, hidden]."""

    def __init__(self, body: Any, pooling: Pooling, dtype: str) -> None:
        self._pooling, self._dtype = pooling, getattr(ms, dtype)
        cell = PooledNetwork(body, pooling)
        cell.set_train(False)
        self._run = ms.jit(cell.construct)

    def __call__(
        self, texts: Sequence[Sequence[int]], shape: BatchShape, segments: Sequence[Sequence[int]] | None = None
    ) -> tuple[Array, Array]:
        """Token ids of at most `shape.rows` texts of at most `shape.length` tokens → [texts, sums, hidden] and, for
        `max`, [texts, hidden]; both float32. `segments` are for a body that takes them."""
        sizes = [len(text) for text in texts] + [1] * (shape.rows - len(texts))  # a softmax needs a token
        mask = np.where(np.arange(shape.length) < np.array(sizes)[:, None], 0, HIDDEN)[:, None, None]
        weights = self._pooling.weights(sizes, shape.length)
        pairs = () if segments is None else (_padded(segments, shape),)
        sums, largest = self._run(_padded(texts, shape), self._tensor(mask), self._tensor(weights), *pairs)
        return self._rows(sums, len(texts)), self._rows(largest, len(texts))

    def warm_up(self, shapes: Sequence[BatchShape], report: Callable[[str], None], *, pairs: bool = False) -> None:
        """Compiles the graphs of all shapes."""
        for number, shape in enumerate(shapes, 1):
            report(f"compiling {shape.rows} x {shape.length} tokens ({number} of {len(shapes)})")
            self([[0]], shape, [[0]] if pairs else None)

    def _tensor(self, array: Array) -> Any:
        return ms.Tensor(array.astype(np.float32)).astype(self._dtype)

    def _rows(self, tensor: Any, count: int) -> Array:
        return tensor.astype(ms.float32).asnumpy()[:count]  # type: ignore[no-any-return]


def _padded(rows: Sequence[Sequence[int]], shape: BatchShape) -> Any:
    """int32 of the given shape; 0 where a row has ended."""
    numbers = np.zeros(shape, np.int32)
    for row, given in zip(numbers, rows, strict=False):
        row[: len(given)] = given
    return ms.Tensor(numbers)
