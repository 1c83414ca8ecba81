"""Attention over blocks, where a number of each query head takes a share of its softmax.

`PagedAttention` has no input for such numbers. Here they are the scores of one more token, which all texts see first:
its key is 1 at a place behind the numbers of a head where others' keys are 0, its value is 0, and queries have there
what makes their score the head's number. It lies in block 0, with which every row of the tables begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights
from msx_llm.kernels.ascend import operators
from msx_llm.models.config import DecoderConfig, with_sink
from msx_llm.models.kernels import Heads
from msx_sdk.mindspore.parallel import Parallel


class SinkBlockAttention(nn.Cell):  # type: ignore[misc]
    """`BlockAttention` without `FlashAttentionScore`, which sees no block."""

    loads_inner = True

    def __init__(self, heads: Heads, parallel: Parallel, place: tuple[int, int], dtype: Any) -> None:
        """place: the layer and its kind, as of `Kernels.attention`"""
        super().__init__()
        (self.layer, self.kind), width = place, with_sink(heads.size)
        self.own, self.scale = heads.own(parallel), heads.scale
        self.queries, self.keys, self.size, self.more = heads.queries, heads.keys, heads.size, width - heads.size
        self.sinks = Parameter(initializer("zeros", (1, heads.queries, width), dtype), name="sinks")
        self.write, self.add, self.join = operators.ReshapeAndCache(), operators.Add(), ops.Concat(-1)
        self.of_blocks = operators.PagedAttention(heads.queries, heads.scale, heads.keys)

    def construct(self, q: Any, k: Any, v: Any, step: Any) -> Any:
        """q [T, N*D], k and v [T, K*D] -> [T, N*D]"""
        _, _, _, slots, tables, lengths, q_lengths, masks, all_keys, all_values = step
        keys, values = all_keys[self.layer], all_values[self.layer]
        k, v = (self.flat(self.widened(it, self.keys)) for it in (k, v))
        q = self.flat(self.add(self.widened(q, self.queries), self.sinks))
        q = ops.depend(q, self.write(k, v, keys, values, slots))
        mixed = self.of_blocks(q, keys, values, tables, lengths, None, None, masks[self.kind], q_lengths)
        return self.flat(mixed.reshape((-1, self.queries, self.size + self.more))[:, :, : self.size])

    def widened(self, x: Any, heads: int) -> Any:
        """[T, heads*D] -> [T, heads, width]"""
        x = x.reshape((-1, heads, self.size))
        return self.join((x, ops.zeros_like(x[:, :, : self.more])))

    def flat(self, x: Any) -> Any:
        return x.reshape((-1, x.shape[1] * x.shape[2]))

    def load_shard(self, weights: Weights, name: str) -> None:
        sinks = np.zeros(self.sinks.shape, np.float32)
        sinks[0, :, self.size] = weights.read(f"{name.rpartition('.')[0]}.sinks", self.own) / self.scale
        fill(self.sinks, sinks)


def put_sink(keys: Any, config: DecoderConfig) -> None:
    """Put it into block 0 of a layer's keys, whose values stay 0."""
    keys[0, 0, :, config.head_dim] = 1
