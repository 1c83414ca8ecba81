"""Contiguous slots, for CPUs: a slot has a row for each key-value head and position, written in place.

A step gathers the rows that its texts see, so that any slots may take part, and no more of the context is read than its
bucket. Only scatter and gather may touch a cache in a graph: all else, even a reshape, copies the whole of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_backend.llm.cache.interface import Array, Places

ALIGNMENT = 64
"""Context lengths are multiples of this."""


class SlotLayout:
    """One slot more than asked for: it takes the keys and values of padding."""

    def __init__(self, slots: int, length: int, kv_heads: int) -> None:
        self.slots, self.length, self.heads = slots, self.extent(length), kv_heads
        self.size = (slots + 1) * kv_heads * self.length
        """The number of rows."""
        self._head = np.arange(kv_heads) * self.length

    def extent(self, context: int) -> int:
        return -(-context // ALIGNMENT) * ALIGNMENT

    def places(self, slots: Sequence[int | None], positions: Array, context: int) -> Places:
        """-> rows [B*P*kv] to write, rows [B*kv*context] to read"""
        first = np.array([self.slots if slot is None else slot for slot in slots])[:, None]
        own = np.where(positions < 0, self.slots, first)
        rows = self._start(own)[..., None] + np.maximum(positions, 0)[..., None] + self._head
        seen = self._start(first)[..., None] + self._head[:, None] + np.arange(context)
        return rows.ravel().astype(np.int32), seen.ravel().astype(np.int32)

    def rows(self, slot: int, length: int) -> Array:
        rows: Array = self._start(slot) + self._head[:, None] + np.arange(length)
        return rows.ravel()

    def _start(self, slot: Any) -> Any:
        return slot * (self.heads * self.length)


class SlotCache(nn.Cell):  # type: ignore[misc]
    """The cache of one layer; `heads` and the layout are those of this rank."""

    def __init__(self, layout: SlotLayout, heads: int, size: int) -> None:
        super().__init__()
        self.heads, self.kv, self.size, self.scale = heads, layout.heads, size, 1 / math.sqrt(size)
        shape = (layout.size, size)
        self.k = Parameter(initializer("zeros", shape, ms.float32), name="k", requires_grad=False)
        self.v = Parameter(initializer("zeros", shape, ms.float32), name="v", requires_grad=False)
        self.scatter, self.gather, self.softmax = ops.ScatterUpdate(), ops.Gather(), ops.Softmax(-1)
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()

    def construct(self, q: Any, k: Any, v: Any, mask: Any, places: Any) -> Any:
        rows, seen = places
        k = self.keep(self.k, rows, k)
        v = self.keep(self.v, rows, v)
        texts, queries, total = mask.shape  # heads of keys and values have taken the place of texts
        count = queries * self.kv // self.heads
        q = self.heads_first(q * self.scale, texts // self.kv, count).reshape((texts, queries, self.size))
        weights = self.softmax(self.scores(q, self.read(k, seen, texts, total)) + mask)
        mixed = self.mix(weights, self.read(v, seen, texts, total))
        return self.tokens_first(mixed, texts // self.kv, count)

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
        for cache in (self.k, self.v):
            self.scatter(cache, target, self.gather(cache, source, 0))

    def load_shard(self, weights: Any, name: str) -> None:
        """Does nothing: files do not have keys and values."""
