"""The decoder of all families, or the part of it that one rank holds, over a cache of keys and values.

Weights lie as [in, out], the transpose of the file: on a CPU that is ten times faster. Names of attributes are those of
Hugging Face's files. In shapes, B is texts, P tokens of each, T the positions that are attended to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from msx_backend.llm.cache.interface import MakeCache
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.masks import Masks, TwoWayMasks
from msx_backend.llm.models.rope import rope_tables
from msx_backend.llm.models.weights import Checkpoint
from msx_sdk.mindspore._loading import load_shards
from msx_sdk.mindspore.layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    VocabParallelHead,
)
from msx_sdk.mindspore.parallel import Parallel

FEW = 64
"""Broadcasting pays up to this many rows: on a CPU each kernel that does it keeps four buffers of the result's size."""


@dataclass(frozen=True)
class DecoderParts:
    """The sizes and options of this rank's layers."""

    parallel: Parallel
    dtype: Any = ms.float32

    def options(self, bias: bool) -> dict[str, Any]:
        """Options of a linear layer."""
        return {"parallel": self.parallel, "bias": bias, "dtype": self.dtype}


class RMSNorm(nn.Cell):  # type: ignore[misc]
    """Computes squares in float32: in 16 bits they overflow from 256 on."""

    def __init__(self, size: int, eps: float, dtype: Any) -> None:
        super().__init__()
        self.weight = Parameter(initializer("ones", (size,), dtype), name="weight")
        self.eps, self.mean, self.square, self.rsqrt = eps, ops.ReduceMean(keep_dims=True), ops.Square(), ops.Rsqrt()
        self.tile, self.narrow = ops.Tile(), dtype != ms.float32

    def construct(self, x: Any) -> Any:
        weight, kind = self.weight, x.dtype
        if self.narrow:
            x = x.astype(ms.float32)
        scale = self.rsqrt(self.mean(self.square(x), -1) + self.eps)
        if x.shape[0] > FEW:
            scale = self.tile(scale, (*(1,) * (x.ndim - 1), x.shape[-1]))
            weight = self.tile(weight, (*x.shape[:-1], 1))
        x = x * scale
        if self.narrow:
            x = x.astype(kind)
        return x * weight


class MLP(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: DecoderConfig, parts: DecoderParts) -> None:
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
    """`cache` is a LayerCache, which `DecoderBody.prepare` gives it."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts) -> None:
        super().__init__()
        hidden, self.size, options = config.hidden_size, config.head_dim, parts.options(config.qkv_bias)
        shards = parts.parallel.tp_size
        self.heads, self.kv = config.heads // shards, config.kv_heads_of(shards)  # of this rank
        shared = options | {"parallel": shared_by(parts.parallel, config.kv_copies(shards))}
        self.q_proj = ColumnParallelLinear(hidden, config.heads * self.size, **options)
        self.k_proj = ColumnParallelLinear(hidden, config.kv_heads * self.size, **shared)
        self.v_proj = ColumnParallelLinear(hidden, config.kv_heads * self.size, **shared)
        self.o_proj = RowParallelLinear(config.heads * self.size, hidden, **parts.options(config.o_bias))
        self.normed = config.qk_norm
        if self.normed:
            self.q_norm = RMSNorm(self.size, config.norm_eps, parts.dtype)
            self.k_norm = RMSNorm(self.size, config.norm_eps, parts.dtype)
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


def shared_by(parallel: Parallel, copies: int) -> Parallel:
    """A rank's place among the parts, where this many neighbouring ranks hold the same part."""
    return replace(parallel, rank=parallel.tp_rank // copies, stages=1, tp_size=parallel.tp_size // copies)


class DecoderLayer(nn.Cell):  # type: ignore[misc]
    """`mask` is the index of the mask for its window."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, mask: int) -> None:
        super().__init__()
        self.mask = mask
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps, parts.dtype)
        self.self_attn = Attention(config, parts)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps, parts.dtype)
        self.mlp = MLP(config, parts)

    def construct(self, x: Any, angles: Any, masks: Any, places: Any) -> Any:
        x = x + self.self_attn(self.input_layernorm(x), angles, masks[self.mask], places)
        return x + self.mlp(self.post_attention_layernorm(x))


class WholeEmbedding(VocabParallelEmbedding):
    """The embedding on one rank, which has all ids."""

    def construct(self, ids: Any) -> Any:
        return ops.gather(self.weight, ids, 0)


class DecoderBody(nn.Cell):  # type: ignore[misc]
    """The layers `own` of the model, after the embedding on the first stage. Call `prepare` before the first use."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, own: range) -> None:
        super().__init__()
        self.config, self.own, self.dtype = config, own, parts.dtype
        self.first, shards = parts.parallel.first_stage, parts.parallel.tp_size
        if self.first:
            kind = VocabParallelEmbedding if shards > 1 else WholeEmbedding
            self.embed_tokens = kind(config.vocab_size, config.hidden_size, parts.parallel, dtype=parts.dtype)
        windows = tuple(dict.fromkeys(config.windows[n] for n in own))
        self.heads, self.kv = config.heads // shards, config.kv_heads_of(shards)
        make_masks = Masks if config.causal else TwoWayMasks
        self.masks = make_masks(windows, self.heads, self.kv, parts.dtype)
        self.layers = nn.CellList([DecoderLayer(config, parts, windows.index(config.windows[n])) for n in own])
        self.stretches = config.stretches
        self.gather, self.tile = ops.Gather(), ops.Tile()

    def prepare(self, length: int, make_cache: MakeCache) -> None:
        """Makes the cache for texts of up to `length` tokens. It is separate from loading weights, because the room may
        be known only after that."""
        if not self.stretches:
            cos, sin = rope_tables(self.config, length)
            self.cos, self.sin = Tensor(cos, self.dtype), Tensor(sin, self.dtype)
        for number, layer in zip(self.own, self.layers, strict=True):
            layer.self_attn.cache = make_cache(self.heads, self.config.head_dim)
            layer.self_attn.cache.update_parameters_name(f"layers.{number}.")  # graphs know parameters by their names

    def construct(self, x: Any, positions: Any, reach: Any, *places: Any) -> Any:
        """x: ids [B*P] on the first stage, else what the one before returned; positions [B, P] -> [B*P, hidden]

        Where the angles of a position depend on its text, cos and sin of each token [B*P, D] come before `places`.
        """
        if self.first:
            x = self.embed_tokens(x)
        if self.stretches:
            cos, sin, places = places[0], places[1], places[2:]
        else:
            flat = positions.reshape((-1,))
            cos, sin = self.gather(self.cos, flat, 0), self.gather(self.sin, flat, 0)
        angles = self.angles(cos, sin, self.heads), self.angles(cos, sin, self.kv)
        masks = self.masks(positions, reach, places)
        for layer in self.layers:
            x = layer(x, angles, masks, places)
        return x

    def angles(self, cos: Any, sin: Any, heads: int) -> Any:
        """-> cos and sin [B*P, heads, D]"""
        cos, sin = ops.expand_dims(cos, 1), ops.expand_dims(sin, 1)
        return self.tile(cos, (1, heads, 1)), self.tile(sin, (1, heads, 1))


class LanguageModelHead(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: DecoderConfig, parts: DecoderParts) -> None:
        super().__init__()
        self.norm = RMSNorm(config.hidden_size, config.norm_eps, parts.dtype)
        self.lm_head = VocabParallelHead(config.vocab_size, config.hidden_size, parts.parallel, dtype=parts.dtype)
        self.gather = ops.Gather()

    def construct(self, x: Any, rows: Any = None) -> Any:
        """The logits of some rows, or of all -> float32 [rows, vocab]"""
        if rows is not None:
            x = self.gather(x, rows, 0)
        return self.lm_head(self.norm(x)).astype(ms.float32)


class Decoder(nn.Cell):  # type: ignore[misc]
    """`body`, and on the last stage `head`; together they are one decoding step."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, own: range) -> None:
        super().__init__()
        self.own, self.tied, self.parallel = own, config.tied, parts.parallel
        self.body = DecoderBody(config, parts, own)
        if parts.parallel.last_stage:
            self.head = LanguageModelHead(config, parts)

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
