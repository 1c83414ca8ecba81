"""Latent attention over slots: the weights that would expand keys and values are multiplied into queries and results,
so that all heads share the one key that the cache holds, whose first part is the value."""

from __future__ import annotations

from typing import Any

from mindspore import Parameter, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.weights import Weights
from msx_llm.kernels.cpu.cells import HalfTurn, ResidualNorm
from msx_llm.kernels.cpu.slots import SlotAttention, SlotLayout, empty_cache
from msx_llm.models.kernels import Heads
from msx_llm.models.latent import LatentConfig
from msx_llm.models.latent_attention import EPS, load_absorbed
from msx_sdk.mindspore.parallel import Parallel


class SlotLatentAttention(SlotAttention):
    loads_inner = True

    def __init__(self, heads: Heads, latent: LatentConfig, parallel: Parallel, kind: int, dtype: Any) -> None:
        super().__init__(heads, kind)
        self.latent, self.own = latent, heads.own(parallel)
        keys, values = ((heads.queries, size, latent.rank) for size in (latent.still, latent.value))
        self.of_keys = Parameter(initializer("zeros", keys, dtype), name="of_keys")
        self.of_values = Parameter(initializer("zeros", values, dtype), name="of_values")
        self.norm = ResidualNorm(latent.rank, EPS, dtype)
        self.turn, self.join = HalfTurn(), ops.Concat(-1)

    def prepare(self, layout: SlotLayout, name: str) -> None:
        self.k = empty_cache((layout.size, self.size), f"{name}.k")
        self.caches = [self.k]

    def construct(self, q: Any, x: Any, step: Any) -> Any:  # type: ignore[override]
        """q [B*P, heads * query], x [B*P, width] -> [B*P, heads * value]"""
        (of_queries, of_keys), mask, (rows, seen) = step[0][self.kind]
        texts, queries, total = mask.shape
        count = queries // self.heads
        k = self.read(self.keep(self.k, rows, self.key(x, of_keys)), seen, texts, total)
        q = self.heads_first(self.query(q, of_queries) * self.scale, texts, count)
        weights = self.softmax(self.scores(q.reshape((texts, queries, self.size)), k) + mask)
        return self.values(self.tokens_first(self.mix(weights, k), texts, count))

    def key(self, x: Any, angles: Any) -> Any:
        """-> [T, 1, width]"""
        rank = self.latent.rank
        still = self.norm(x[:, :rank])[0].reshape((-1, 1, rank))
        return self.join((still, self.turn(x[:, rank:].reshape((-1, 1, self.latent.turning)), angles)))

    def query(self, q: Any, angles: Any) -> Any:
        """-> [T, heads, width]"""
        q = q.reshape((-1, self.heads, self.latent.query))
        still = self.mix(q[:, :, : self.latent.still].transpose((1, 0, 2)), self.of_keys).transpose((1, 0, 2))
        return self.join((still, self.turn(q[:, :, self.latent.still :], angles)))

    def values(self, mixed: Any) -> Any:
        mixed = mixed.reshape((-1, self.heads, self.size))[:, :, : self.latent.rank].transpose((1, 0, 2))
        return self.scores(mixed, self.of_values).transpose((1, 0, 2)).reshape((-1, self.heads * self.latent.value))

    def load_shard(self, weights: Weights, name: str) -> None:
        load_absorbed(self, weights, name)
