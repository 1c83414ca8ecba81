"""Attention of a decoder that keeps no keys and values."""

from __future__ import annotations

from typing import Any

from mindspore import nn, ops

from msx_llm.kernels.cpu.factory import CpuKernels
from msx_llm.models.delta import DeltaConfig
from msx_llm.models.kernels import Heads
from msx_llm.models.latent import LatentConfig
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.parallel import Parallel


class UncachedKernels(CpuKernels):
    """Plain operators, with attention over the tokens of one step alone."""

    def attention(self, heads: Heads, layer: int, kind: int) -> Any:
        return UncachedAttention(heads, kind)

    def sink_attention(self, heads: Heads, parallel: Parallel, layer: int, kind: int) -> Any:
        raise HandlerLoadError(
            "config.json, model_type: a model whose attention has sinks makes no embeddings here; serve it with "
            "--handler text_generation"
        )

    def delta_state(self, delta: DeltaConfig, parallel: Parallel, eps: float) -> Any:
        raise HandlerLoadError(
            "config.json, model_type: a model with gated delta nets makes no embeddings here; serve it with "
            "--handler text_generation"
        )

    def reading_attention(self, heads: Heads, source: int, kind: int) -> Any:
        raise HandlerLoadError(
            "config.json, num_kv_shared_layers: a model whose layers read what others keep makes no embeddings here; "
            "serve it with --handler text_generation"
        )

    def latent_attention(self, heads: Heads, latent: LatentConfig, parallel: Parallel, layer: int, kind: int) -> Any:
        raise HandlerLoadError(
            "config.json, kv_lora_rank: a model with latent attention makes no embeddings here; serve it with "
            "--handler text_generation"
        )


class UncachedAttention(nn.Cell):  # type: ignore[misc]
    """B is texts, P tokens of each, D the size of a head."""

    def __init__(self, heads: Heads, kind: int) -> None:
        super().__init__()
        self.heads, self.kv, self.size, self.kind = heads.queries, heads.keys, heads.size, kind
        self.scale = heads.scale
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
        self.softmax = ops.Softmax(-1)

    def construct(self, q: Any, k: Any, v: Any, step: Any) -> Any:
        """q [B*P, heads, D], k [B*P, kv, D], v [B*P, kv*D] → [B*P, heads*D]; the step's masks are additive"""
        masks = step[0][self.kind][1]
        many, rows, count = masks.shape
        batch = many // self.kv
        q = self.heads_first(q * self.scale, batch, count, self.heads).reshape((many, rows, self.size))
        k, v = self.heads_first(k, batch, count, self.kv), self.heads_first(v, batch, count, self.kv)
        scores = self.scores(q, k.reshape((many, count, self.size)))
        mixed = self.mix(self.softmax(scores + masks), v.reshape((many, count, self.size)))
        mixed = mixed.reshape((batch, self.heads, count, self.size)).transpose((0, 2, 1, 3))
        return mixed.reshape((-1, self.heads * self.size))

    def heads_first(self, x: Any, batch: int, count: int, heads: int) -> Any:
        return x.reshape((batch, count, heads, self.size)).transpose((0, 2, 1, 3))
