"""Attention of a layer: what is made of its input, and what is made of it; a device's cell attends."""

from __future__ import annotations

from typing import Any

import numpy as np
from mindspore import nn

from msx_core.mindspore.loading import fill
from msx_core.mindspore.weights import Weights
from msx_llm.models.adapted import adapted_columns, adapted_row
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Projection
from msx_llm.models.latent_attention import LatentAttention
from msx_llm.models.linears import LayerLinears
from msx_llm.models.parts import DecoderParts, LayerPlace, shared_by


class Attention(nn.Cell):  # type: ignore[misc]
    """Attention of any kind but latent. With a `source` in the config it makes queries alone, and reads the keys and
    values of that layer."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, place: LayerPlace) -> None:
        super().__init__()
        kernels, parallel, heads = parts.kernels, parts.parallel, parts.heads(config)
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        shared, self.reads = shared_by(parallel, config.kv_copies(parallel.tp_size)), config.source is not None
        outputs = {"q_proj": (queries, parallel)}
        outputs |= {} if self.reads else {"k_proj": (keys, shared), "v_proj": (keys, shared)}
        outputs |= {"gate_proj": (queries, parallel)} if config.gated else {}
        projections = {name: Projection(*it) for name, it in outputs.items()}
        self.qkv = linears.projections("self_attn", config.hidden_size, projections, config.qkv_bias)
        self.o_proj = linears.row("self_attn.o_proj", queries, config.hidden_size, parallel, config.o_bias)
        self.gated = config.gated
        if self.gated:
            self.gate = kernels.output_gate()
        normed = config.qk_norm or config.qk_norm_whole
        self.normed, self.normed_last = normed and not config.qk_norm_last, normed and config.qk_norm_last
        widths = (queries, keys) if config.qk_norm_whole else (config.head_dim, config.head_dim)
        if normed:
            self.q_norm = kernels.head_norm(widths[0], config.norm_eps)
        if normed and not self.reads:
            self.k_norm = kernels.head_norm(widths[1], config.norm_eps)
        self.value_normed = config.value_norm and not self.reads
        if self.value_normed:
            self.v_norm = PlainNorm(kernels.head_norm(config.head_dim, config.norm_eps))
        self.attend = attending(config, parts, place)
        self.rotary = kernels.query_rotary(place.kind) if self.reads else kernels.rotary(heads, place.kind)
        shape, hidden = parts.adapters, config.hidden_size
        self.adapted = shape is not None
        if shape is not None:
            self.qkv = adapted_columns(shape, kernels, self.qkv, "self_attn", hidden, projections)
            self.o_proj = adapted_row(shape, kernels, self.o_proj, "self_attn.o_proj", queries, hidden, parallel)

    def construct(self, x: Any, step: Any, columns: Any = None) -> Any:
        made: Any = self.qkv(x, columns) if self.adapted else self.qkv(x)
        x = self.of_source(made[0], step) if self.reads else self.of_own(made[0], made[1], made[2], step)
        if self.gated:
            x = self.gate(x, made[3])
        return self.o_proj(x, columns)[0] if self.adapted else self.o_proj(x)

    def of_own(self, q: Any, k: Any, v: Any, step: Any) -> Any:
        if self.normed:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.value_normed:
            v = self.v_norm(v)
        q, k = self.rotary(q, k, step)
        if self.normed_last:
            q, k = self.q_norm(q), self.k_norm(k)
        return self.attend(q, k, v, step)

    def of_source(self, q: Any, step: Any) -> Any:
        return self.attend(self.rotary(self.q_norm(q), step), step)


class PlainNorm(nn.Cell):  # type: ignore[misc]
    """A norm without weights: no file has them."""

    loads_inner = True

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.norm = norm

    def construct(self, x: Any) -> Any:
        return self.norm(x)

    def load_shard(self, weights: Weights, name: str) -> None:
        fill(self.norm.weight, np.ones(self.norm.weight.shape, np.float32))


def attending(config: DecoderConfig, parts: DecoderParts, place: LayerPlace) -> Any:
    """The device's cell, with the cache of keys and values."""
    kernels, heads = parts.kernels, parts.heads(config)
    if config.source is not None:
        return kernels.reading_attention(heads, config.source - place.first, place.kind)
    if config.sinks:
        return kernels.sink_attention(heads, parts.parallel, place.layer, place.kind)
    return kernels.attention(heads, place.layer, place.kind)


def attention(config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, place: LayerPlace) -> nn.Cell:
    if config.latent is None:
        return Attention(config, parts, linears, place)
    where = place.layer, place.kind
    return LatentAttention(config, config.latent, parts.kernels, parts.parallel, shared_by(parts.parallel), where)
