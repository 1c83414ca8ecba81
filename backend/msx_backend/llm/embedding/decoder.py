"""A decoder of `llm.models` without a cache: all tokens of a text are computed at once, and none is generated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from msgspec.structs import replace

from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.decoder import DecoderBody, DecoderParts, RMSNorm
from msx_backend.llm.models.weights import Checkpoint
from msx_sdk.mindspore._loading import load_shards, without_data
from msx_sdk.mindspore.parallel import Parallel


class UncachedAttention(nn.Cell):  # type: ignore[misc]
    """Attention in place of a `LayerCache`; it keeps nothing. B is texts, P tokens of each, D the size of a head."""

    def __init__(self, heads: int, kv_heads: int, size: int) -> None:
        super().__init__()
        self.heads, self.kv, self.size, self.scale = heads, kv_heads, size, size**-0.5
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
        self.softmax = ops.Softmax(-1)

    def construct(self, q: Any, k: Any, v: Any, masks: Any, places: Any) -> Any:
        """q [B*P, heads, D], k and v [B*P, kv, D], masks [B*kv, heads/kv*P, P] additive → [B*P, heads*D]"""
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


class EmbeddingDecoder(nn.Cell):  # type: ignore[misc]
    """ids [B, P] → the states [B, P, hidden]. Padding follows a text, so that tokens that see only earlier ones need no
    mask for it.

    `longest` is at most `config.native`: the angles do not depend on the length of a text.
    """

    def __init__(self, config: DecoderConfig, dtype: Any, longest: int) -> None:
        super().__init__()
        config = replace(config, context=min(config.context, longest))
        self.body = DecoderBody(config, DecoderParts(Parallel(), dtype), range(config.layers))
        self.body.prepare(longest, lambda heads, size: UncachedAttention(heads, config.kv_heads, size))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps, dtype)
        self.places = ms.Tensor(np.arange(longest, dtype=np.int32))

    def construct(self, ids: Any, mask: Any) -> Any:
        batch, length = ids.shape
        reach = self.places[:length]
        positions = ops.tile(reach.reshape((1, length)), (batch, 1))
        states = self.norm(self.body(ids.reshape((-1,)), positions, reach, mask))
        return states.reshape((batch, length, -1))


def load_decoder(folder: Path, config: DecoderConfig, dtype: str, longest: int) -> EmbeddingDecoder:
    """Raises HandlerLoadError for weights that do not fit `config`."""
    checkpoint = Checkpoint(folder, config)
    with checkpoint:
        with without_data():
            decoder = EmbeddingDecoder(config, getattr(ms, dtype), longest)
        load_shards(decoder.body, checkpoint, checkpoint.prefix.rstrip("."))
        load_shards(decoder.norm, checkpoint, f"{checkpoint.prefix}norm")
    return decoder
