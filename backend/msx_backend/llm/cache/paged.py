"""Blocks of memory that texts take as they grow, for Ascend NPUs, by its fused kernels.

This has not been run on an NPU so far. The kernels and their layouts are those of MindSpore's documentation and of
vllm-mindspore: a cache of [blocks, BLOCK, kv_heads, head_dim], into which `ReshapeAndCache` writes by a token's place,
and which `PagedAttention` reads by tables of blocks. It has no windows: `check_windows` refuses what needs one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_backend.llm.cache.interface import Array, Places
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore._loading import without_data

BLOCK = 128
"""Tokens; the kernels' own size."""
NOWHERE = -1
"""The place of a token that is not kept."""


class PagedLayout:
    """The blocks of each slot are contiguous until `assign` gives it others. Block 0 is for padding."""

    def __init__(self, slots: int, length: int, kv_heads: int) -> None:
        self.heads, per_slot = kv_heads, self.extent(length) // BLOCK
        self.blocks = 1 + slots * per_slot
        self.tables = np.arange(1, self.blocks).reshape(slots, per_slot)

    def extent(self, context: int) -> int:
        return -(-context // BLOCK) * BLOCK

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        """From now on the slot's positions are in these blocks, in this order."""
        self.tables[slot, : len(blocks)] = blocks

    def places(self, slots: Sequence[int | None], positions: Array, context: int) -> Places:
        """-> places [B*P] to write, tables [B*P, context/BLOCK] to read, and of each token how many positions"""
        tables = np.stack([self._table(slot, context // BLOCK) for slot in slots])
        own = np.maximum(positions, 0)
        block = np.take_along_axis(tables, own // BLOCK, axis=1)
        write = np.where(positions < 0, NOWHERE, block * BLOCK + own % BLOCK)
        read = np.repeat(tables, positions.shape[1], axis=0)
        return write.ravel().astype(np.int32), read.astype(np.int32), (own + 1).ravel().astype(np.int32)

    def rows(self, slot: int, length: int) -> Array:
        """Block numbers; the last block may be partly filled."""
        rows: Array = self.tables[slot, : -(-length // BLOCK)]
        return rows

    def _table(self, slot: int | None, size: int) -> Array:
        table: Array = np.zeros(size, int) if slot is None else self.tables[slot, :size]
        return table


def check_windows(windows: Sequence[int | None], context: int) -> None:
    """Raises HandlerLoadError if texts could be longer than the window of a layer."""
    window = min((window for window in windows if window is not None), default=context)
    if window < context:
        raise HandlerLoadError(
            f"config.json, sliding_window: {window}: on Ascend a text cannot be longer than the window; set "
            f"maxTotalTokens: {window} in model-config.yaml"
        )


class PagedCache(nn.Cell):  # type: ignore[misc]
    """The cache of one layer. `PagedAttention` treats every token as a text of its own, also the tokens of one prompt,
    whose keys are written before the first of them attends."""

    def __init__(self, layout: PagedLayout, heads: int, size: int, dtype: Any) -> None:
        super().__init__()
        self.heads, self.kv, self.size = heads, layout.heads, size
        shape = (layout.blocks, BLOCK, self.kv, size)
        self.k, self.v = _on_device("k", shape, dtype), _on_device("v", shape, dtype)
        self.write = ops.auto_generate.ReshapeAndCache()
        self.attend = ops.auto_generate.PagedAttention(heads, 1 / math.sqrt(size), self.kv)
        self.gather, self.scatter = ops.Gather(), ops.ScatterUpdate()

    def construct(self, q: Any, k: Any, v: Any, mask: Any, places: Any) -> Any:
        write, tables, lengths = places
        kv = (-1, self.kv * self.size)
        q = ops.depend(q.reshape((-1, self.heads * self.size)), self.keep(k.reshape(kv), v.reshape(kv), write))
        return self.attend(q, self.k, self.v, tables, lengths)

    def keep(self, k: Any, v: Any, write: Any) -> Any:
        return self.write(k, v, self.k, self.v, write)

    def copy(self, source: Any, target: Any) -> None:
        for cache in (self.k, self.v):
            self.scatter(cache, target, self.gather(cache, source, 0))

    def load_shard(self, weights: Any, name: str) -> None:
        """Does nothing: files do not have keys and values."""


def _on_device(name: str, shape: tuple[int, ...], dtype: Any) -> Parameter:
    """Zeros that are made on the device: the cache is most of its memory, and copying it from the host would take
    minutes."""
    with without_data():
        parameter = Parameter(initializer("zeros", shape, dtype), name=name, requires_grad=False)
    parameter.set_data(ops.zeros(shape, dtype))
    return parameter
