"""Contiguous slots, for CPUs: a slot has a row for each key-value head and position, written in place.

A step gathers the rows that its texts see, so that any slots may take part, and no more of the context is read than its
bucket. Only scatter and gather may touch a cache in a graph: all else, even a reshape, copies the whole of it.
`EmbeddingLookup` gathers with all threads, where `Gather` has one: of 16 texts it takes 0.55 of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from msx_llm.kernels.cpu.extent import extent
from msx_llm.kernels.cpu.pages import release
from msx_llm.models.kernels import Array, Heads


class SlotLayout:
    """One slot more than asked for: it takes the keys and values of padding."""

    def __init__(self, slots: int, length: int, kv_heads: int) -> None:
        self.slots, self.length, self.heads = slots, self.extent(length), kv_heads
        self.size = (slots + 1) * kv_heads * self.length
        """The number of rows."""
        self._head = np.arange(kv_heads) * self.length

    def extent(self, context: int) -> int:
        """The number of positions that are read if `context` are wanted."""
        return extent(context)

    def places(self, slots: Sequence[int | None], positions: Array, context: int) -> tuple[Array, Array]:
        """The places of the tokens at `positions` [B, P] of B texts, which attend to `context` positions, an `extent`;
        a position below 0, or the slot None, is padding. -> rows [B*P*kv] to write, rows [B*kv*context] to read

        Behind a text's last position they repeat its row: the mask hides them, and memory is not read for them.
        """
        first = np.array([self.slots if slot is None else slot for slot in slots])[:, None]
        own = np.where(positions < 0, self.slots, first)
        rows = self._start(own)[..., None] + np.maximum(positions, 0)[..., None] + self._head
        reach = np.minimum(np.arange(context), np.maximum(positions.max(-1), 0)[:, None, None])
        seen = self._start(first)[..., None] + self._head[:, None] + reach
        return rows.ravel().astype(np.int32), seen.ravel().astype(np.int32)

    def rows(self, slot: int, length: int) -> Array:
        """The rows of the first `length` tokens of a slot, in an order that is the same for every slot."""
        rows: Array = self._start(slot) + self._head[:, None] + np.arange(length)
        return rows.ravel()

    def _start(self, slot: Any) -> Any:
        return slot * (self.heads * self.length)


def empty_cache(shape: tuple[int, ...], name: str) -> Parameter:
    """Zeros, which take no memory before they are written."""
    cache = Parameter(Tensor.from_numpy(np.zeros(shape, np.float32)), name=name, requires_grad=False)
    release([cache])
    return cache


class SlotAttention(nn.Cell):  # type: ignore[misc]
    """Attention of one layer, and its keys and values, which `prepare` makes."""

    def __init__(self, heads: Heads, kind: int) -> None:
        super().__init__()
        self.heads, self.kv, self.size, self.kind = heads.queries, heads.keys, heads.size, kind
        self.scale = heads.scale
        self.scatter, self.gather, self.softmax = ops.ScatterUpdate(), ops.EmbeddingLookup(), ops.Softmax(-1)
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()

    def prepare(self, layout: SlotLayout, name: str) -> None:
        """`name` differs for each layer: graphs know parameters by their names."""
        self.k, self.v = (empty_cache((layout.size, self.size), f"{name}.{part}") for part in "kv")
        self.caches = [self.k, self.v]

    def share(self, layers: Sequence[SlotAttention]) -> None:
        """Takes the keys and values of another one of the rank's layers, if it reads those."""

    def load_shard(self, weights: Any, name: str) -> None:
        """It has keys and values, which are not read from files."""

    def construct(self, q: Any, k: Any, v: Any, step: Any) -> Any:
        """q [B*P, heads, D], k and v [B*P, kv, D] of B texts with P tokens each -> [B*P, heads*D]"""
        rows = step[0][self.kind][2][0]
        return self.attended(q, self.keep(self.k, rows, k), self.keep(self.v, rows, v), step)

    def attended(self, q: Any, k: Any, v: Any, step: Any) -> Any:
        """k, v: the caches"""
        _, mask, (_, seen) = step[0][self.kind]
        texts, queries, total = mask.shape  # heads of keys and values have taken the place of texts
        count = queries * self.kv // self.heads
        q = self.heads_first(q * self.scale, texts // self.kv, count).reshape((texts, queries, self.size))
        weights = self.shares(self.scores(q, self.read(k, seen, texts, total)) + mask, count)
        mixed = self.mix(weights, self.read(v, seen, texts, total))
        return self.tokens_first(mixed, texts // self.kv, count)

    def shares(self, scores: Any, count: int) -> Any:
        """scores [B*kv, heads/kv * P, T], count: P"""
        return self.softmax(scores)

    def keep(self, cache: Any, rows: Any, new: Any) -> Any:
        return ops.depend(cache, self.scatter(cache, rows, new.reshape((-1, self.size))))

    def read(self, cache: Any, seen: Any, texts: int, total: int) -> Any:
        return self.gather(cache, seen, 0).reshape((texts, total, self.size))

    def heads_first(self, x: Any, batch: int, count: int) -> Any:
        if count > 1:
            x = x.reshape((batch, count, self.heads, self.size)).transpose((0, 2, 1, 3))
        return x

    def tokens_first(self, x: Any, batch: int, count: int) -> Any:
        if count > 1:
            x = x.reshape((batch, self.heads, count, self.size)).transpose((0, 2, 1, 3))
        return x.reshape((-1, self.heads * self.size))

    def copy(self, source: Any, target: Any) -> None:
        """Copies rows to rows; outside of graphs."""
        for cache in self.caches:
            self.scatter(cache, target, self.gather(cache, source, 0))


class ReadingSlotAttention(SlotAttention):
    """Attends to what the layer `source` has, which has written in the same step."""

    def __init__(self, heads: Heads, source: int, kind: int) -> None:
        super().__init__(heads, kind)
        self.source = source

    def prepare(self, layout: SlotLayout, name: str) -> None:
        self.caches = []

    def share(self, layers: Sequence[SlotAttention]) -> None:
        self.k, self.v = layers[self.source].k, layers[self.source].v

    def construct(self, q: Any, step: Any) -> Any:  # type: ignore[override]
        """q [B*P, heads, D] -> [B*P, heads*D]"""
        return self.attended(q, ops.depend(self.k, q), ops.depend(self.v, q), step)
