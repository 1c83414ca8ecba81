"""Latent attention over blocks, which hold one key of all heads for each token; its first part is the value."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.weights import Weights
from msx_llm.kernels.ascend import operators
from msx_llm.kernels.ascend.cells import Norm
from msx_llm.kernels.ascend.inputs import PREFILL
from msx_llm.models.kernels import Heads
from msx_llm.models.latent import LatentConfig
from msx_llm.models.latent_attention import EPS, load_absorbed
from msx_sdk.mindspore.parallel import Parallel


class LatentBlockAttention(nn.Cell):  # type: ignore[misc]
    """`ReshapeAndCache(key, None, cache, None, slots)` writes. Then

    - of prompts, keys and values of all heads are expanded for `FlashAttentionScore`, values as wide as keys;
    - else `PagedAttention(…, mla_v_dim)` attends to the cache itself, given as keys and as values, with what would
      expand them multiplied into queries and results (mindformers 2.1.0, transformer/multi_latent_attention.py).
    """

    loads_inner = True

    def __init__(self, heads: Heads, latent: LatentConfig, parallel: Parallel, layer: int, dtype: Any) -> None:
        super().__init__()
        self.latent, self.layer, self.heads, scale = latent, layer, heads.queries, heads.scale
        self.own = heads.own(parallel)
        keys, values = ((heads.queries, size, latent.rank) for size in (latent.still, latent.value))
        self.of_keys = Parameter(initializer("zeros", keys, dtype), name="of_keys")
        self.of_values = Parameter(initializer("zeros", values, dtype), name="of_values")
        self.norm, self.turn = Norm(latent.rank, EPS, dtype), operators.ApplyRotaryPosEmb(2)
        self.split, self.join, self.tile = operators.SplitWithSize(), ops.Concat(-1), operators.Tile()
        self.matmul, self.absorb = operators.MatMul(transpose_b=True), operators.BatchMatMul()
        self.expand, self.write = operators.BatchMatMul(transpose_b=True), operators.ReshapeAndCache()
        self.of_prompts = operators.FlashAttentionScore(heads.queries, scale_value=scale, input_layout="TH")
        self.of_blocks = operators.PagedAttention(heads.queries, scale, 1, "DEFAULT", "MASK_DEFAULT", latent.rank)

    def construct(self, q: Any, x: Any, step: Any) -> Any:
        """q [T, N * query], x [T, width] -> [T, N * value]"""
        kind, cos, sin, slots, tables, lengths, q_lengths, masks, all_keys, _ = step
        it, keys, mask = self.latent, all_keys[self.layer], masks[0]
        vector, turning = self.split(x, (it.rank, it.turning), -1)
        vector = self.norm(vector)[0]
        still, turned = self.split(q.reshape((-1, self.heads, it.query)), (it.still, it.turning), -1)
        turned = turned.reshape((-1, self.heads * it.turning))
        turned, turning = self.turn(turned, turning, cos[0], sin[0], lengths)
        turned = turned.reshape((-1, self.heads, it.turning))
        still = ops.depend(still, self.write(self.join((vector, turning)), None, keys, None, slots))
        if kind == PREFILL:
            return self.prompts(self.join((still, turned)), vector, turning, mask, lengths)
        still = self.absorb(still.transpose((1, 0, 2)), self.of_keys).transpose((1, 0, 2))
        q = self.join((still, turned)).reshape((-1, self.heads * it.width))
        mixed = self.of_blocks(q, keys, keys, tables, lengths, None, None, mask, q_lengths)
        mixed = mixed.reshape((-1, self.heads, it.rank)).transpose((1, 0, 2))
        return self.expand(mixed, self.of_values).transpose((1, 0, 2)).reshape((-1, self.heads * it.value))

    def prompts(self, q: Any, vector: Any, turning: Any, mask: Any, lengths: Any) -> Any:
        it, width = self.latent, self.heads * self.latent.query
        still = self.expanded(vector, self.of_keys, it.still)
        k = self.join((still, self.tile(ops.expand_dims(turning, 1), (1, self.heads, 1))))
        _, filling = self.split(k, (it.value, it.query - it.value), -1)
        v = self.join((self.expanded(vector, self.of_values, it.value), filling)).reshape((-1, width))
        q, k = q.reshape((-1, width)), k.reshape((-1, width))
        mixed = self.of_prompts(q, k, v, None, None, None, mask, None, lengths, lengths)[3]
        mixed, _ = self.split(mixed.reshape((-1, self.heads, it.query)), (it.value, it.query - it.value), -1)
        return mixed.reshape((-1, self.heads * it.value))

    def expanded(self, vector: Any, weight: Any, size: int) -> Any:
        """-> [T, N, size]"""
        made = self.matmul(vector, weight.reshape((self.heads * size, self.latent.rank)))
        return made.reshape((-1, self.heads, size))

    def load_shard(self, weights: Weights, name: str) -> None:
        load_absorbed(self, weights, name)
