"""The decoder of all families, or the part of it that one rank holds, over a cache of keys and values.

Weights lie as [in, out], the transpose of the file: on a CPU that is ten times faster. Names of attributes are those of
Hugging Face's files. In shapes, B is texts, P tokens of each, T the positions that are attended to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from msx_backend.llm.models.config import ModelConfig
from msx_backend.llm.models.rope import rope_tables
from msx_backend.llm.models.weights import Checkpoint
from msx_sdk.mindspore.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    VocabParallelHead,
)
from msx_sdk.mindspore.loading import load_shards
from msx_sdk.mindspore.parallel import Parallel

FEW = 64
"""Rows up to which broadcasting is worth it: on a CPU each kernel that does keeps four buffers of the result's size."""
UNSEEN = -1e9
"""Added to the scores of what a token does not see."""


@dataclass(frozen=True)
class Parts:
    """What this rank's layers are made with. `make_cache`: of a layer's name, its heads, a head's size -> LayerCache"""

    parallel: Parallel
    make_cache: Callable[[str, int, int], Any]
    dtype: Any = ms.float32

    def options(self, bias: bool) -> dict[str, Any]:
        """Of a linear layer."""
        return {"parallel": self.parallel, "bias": bias, "dtype": self.dtype}


class RMSNorm(nn.Cell):  # type: ignore[misc]
    def __init__(self, size: int, eps: float, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("ones", (size,), dtype), name="weight")
        self.eps, self.mean, self.square, self.rsqrt = eps, ops.ReduceMean(keep_dims=True), ops.Square(), ops.Rsqrt()
        self.tile = ops.Tile()

    def construct(self, x: Any) -> Any:
        scale, weight = self.rsqrt(self.mean(self.square(x), -1) + self.eps), self.weight
        if x.shape[0] > FEW:
            scale = self.tile(scale, (*(1,) * (x.ndim - 1), x.shape[-1]))
            weight = self.tile(weight, (*x.shape[:-1], 1))
        return x * scale * weight


class MLP(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: ModelConfig, parts: Parts) -> None:
        super().__init__()
        hidden, inner, options = config.hidden_size, config.intermediate_size, parts.options(config.mlp_bias)
        self.gate_proj = ColumnParallelLinear(hidden, inner, **options)
        self.up_proj = ColumnParallelLinear(hidden, inner, **options)
        self.down_proj = RowParallelLinear(inner, hidden, **options)
        self.sigmoid = ops.Sigmoid()

    def construct(self, x: Any) -> Any:
        gate = self.gate_proj(x)
        return self.down_proj(gate * self.sigmoid(gate) * self.up_proj(x))


class Attention(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: ModelConfig, parts: Parts, name: str) -> None:
        super().__init__()
        hidden, self.size, options = config.hidden_size, config.head_dim, parts.options(config.qkv_bias)
        shards = parts.parallel.tp_size
        self.heads, self.kv = config.heads // shards, config.kv_heads // shards  # of this rank
        self.q_proj = ColumnParallelLinear(hidden, config.heads * self.size, **options)
        self.k_proj = ColumnParallelLinear(hidden, config.kv_heads * self.size, **options)
        self.v_proj = ColumnParallelLinear(hidden, config.kv_heads * self.size, **options)
        self.o_proj = RowParallelLinear(config.heads * self.size, hidden, **parts.options(config.o_bias))
        self.normed = config.qk_norm
        if self.normed:
            self.q_norm = RMSNorm(self.size, config.norm_eps, parts.dtype)
            self.k_norm = RMSNorm(self.size, config.norm_eps, parts.dtype)
        self.cache = parts.make_cache(name, self.heads, self.size)
        self.halves, self.join, self.negate = ops.Split(-1, 2), ops.Concat(-1), ops.Neg()

    def construct(self, x: Any, angles: Any, mask: Any, places: Any) -> Any:
        q = self.q_proj(x).reshape((-1, self.heads, self.size))
        k = self.k_proj(x).reshape((-1, self.kv, self.size))
        if self.normed:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = self.rotate(q, angles[0]), self.rotate(k, angles[1])
        return self.o_proj(self.cache(q, k, self.v_proj(x), mask, places))

    def rotate(self, x: Any, angles: Any) -> Any:
        cos, sin = angles
        first, second = self.halves(x)
        return x * cos + self.join((self.negate(second), first)) * sin


class Masks(nn.Cell):  # type: ignore[misc]
    """Which positions each token sees: of the T first, those up to its own, and no further back than a window."""

    def __init__(self, windows: tuple[int | None, ...], heads: int, kv: int, dtype: Any) -> None:
        super().__init__()
        self.windows, self.dtype, self.kv, self.group = windows, dtype, kv, heads // kv
        self.tile = ops.Tile()

    def construct(self, positions: Any, reach: Any) -> Any:
        """positions [B, P], reach: 0 … T-1 -> for each window [B*kv, group*P, T], to be added to scores"""
        batch, count = positions.shape
        ahead = reach - ops.expand_dims(positions, -1)
        masks: Any = ()
        for window in self.windows:
            unseen = ahead > 0
            if window is not None:
                unseen = ops.logical_or(unseen, ahead <= -window)
            mask = (unseen.astype(self.dtype) * UNSEEN).reshape((batch, 1, 1, count, -1))
            mask = self.tile(mask, (1, self.kv, self.group, 1, 1))
            masks = (*masks, mask.reshape((batch * self.kv, self.group * count, -1)))
        return masks


class Layer(nn.Cell):  # type: ignore[misc]
    """`mask` is the index of its window's mask."""

    def __init__(self, config: ModelConfig, parts: Parts, name: str, mask: int) -> None:
        super().__init__()
        self.mask = mask
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps, parts.dtype)
        self.self_attn = Attention(config, parts, name)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps, parts.dtype)
        self.mlp = MLP(config, parts)

    def construct(self, x: Any, angles: Any, masks: Any, places: Any) -> Any:
        x = x + self.self_attn(self.input_layernorm(x), angles, masks[self.mask], places)
        return x + self.mlp(self.post_attention_layernorm(x))


class WholeEmbedding(VocabParallelEmbedding):
    """On one rank no id is another's."""

    def construct(self, ids: Any) -> Any:
        return ops.gather(self.weight, ids, 0)


class Body(nn.Cell):  # type: ignore[misc]
    """The layers `own` of the model, after the embedding on the first stage."""

    def __init__(self, config: ModelConfig, parts: Parts, own: range, length: int) -> None:
        super().__init__()
        self.first = parts.parallel.first_stage
        if self.first:
            kind = VocabParallelEmbedding if parts.parallel.tp_size > 1 else WholeEmbedding
            self.embed_tokens = kind(config.vocab_size, config.hidden_size, parts.parallel, dtype=parts.dtype)
        windows = tuple(dict.fromkeys(config.windows[n] for n in own))
        self.heads, self.kv = config.heads // parts.parallel.tp_size, config.kv_heads // parts.parallel.tp_size
        self.masks = Masks(windows, self.heads, self.kv, parts.dtype)
        self.layers = nn.CellList([Layer(config, parts, f"layers.{n}", windows.index(config.windows[n])) for n in own])
        cos, sin = rope_tables(config, length)
        self.cos, self.sin = Tensor(cos, parts.dtype), Tensor(sin, parts.dtype)
        self.gather, self.tile = ops.Gather(), ops.Tile()

    def construct(self, x: Any, positions: Any, reach: Any, *places: Any) -> Any:
        """x: ids [B*P] on the first stage, else what the one before returned; positions [B, P] -> [B*P, hidden]"""
        if self.first:
            x = self.embed_tokens(x)
        flat = positions.reshape((-1,))
        angles = self.angles(flat, self.heads), self.angles(flat, self.kv)
        masks = self.masks(positions, reach)
        for layer in self.layers:
            x = layer(x, angles, masks, places)
        return x

    def angles(self, positions: Any, heads: int) -> Any:
        """-> cos and sin [B*P, heads, D]"""
        cos = ops.expand_dims(self.gather(self.cos, positions, 0), 1)
        sin = ops.expand_dims(self.gather(self.sin, positions, 0), 1)
        return self.tile(cos, (1, heads, 1)), self.tile(sin, (1, heads, 1))


class Head(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: ModelConfig, parts: Parts) -> None:
        super().__init__()
        self.norm = RMSNorm(config.hidden_size, config.norm_eps, parts.dtype)
        self.lm_head = VocabParallelHead(config.vocab_size, config.hidden_size, parts.parallel, dtype=parts.dtype)
        self.gather = ops.Gather()

    def construct(self, x: Any, rows: Any = None) -> Any:
        """Of some rows, or of all -> logits float32 [rows, vocab]"""
        if rows is not None:
            x = self.gather(x, rows, 0)
        return self.lm_head(self.norm(x)).astype(ms.float32)


class Decoder(nn.Cell):  # type: ignore[misc]
    """`body`, and on the last stage `head`; both together are one step of decoding."""

    def __init__(self, config: ModelConfig, parts: Parts, own: range, length: int) -> None:
        super().__init__()
        self.own, self.tied, self.parallel = own, config.tied, parts.parallel
        self.body = Body(config, parts, own, length)
        if parts.parallel.last_stage:
            self.head = Head(config, parts)

    def construct(self, x: Any, positions: Any, reach: Any, *places: Any) -> Any:
        return self.head(self.body(x, positions, reach, *places))

    def load(self, checkpoint: Checkpoint) -> None:
        """Reads this rank's part of the files."""
        prefix, embedding = checkpoint.prefix, f"{checkpoint.prefix}embed_tokens"
        if self.parallel.first_stage:
            load_shards(self.body.embed_tokens, checkpoint, embedding)
        for number, layer in zip(self.own, self.body.layers, strict=True):
            load_shards(layer, checkpoint, f"{prefix}layers.{number}")
        if self.parallel.last_stage:
            load_shards(self.head.norm, checkpoint, f"{prefix}norm")
            load_shards(self.head.lm_head, checkpoint, embedding if self.tied else "lm_head")
