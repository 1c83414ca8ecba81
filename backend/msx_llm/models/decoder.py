"""The decoder of all families, or the part of it that one rank holds, over a cache of keys and values.

It knows no device: `kernels` make its cells. Names of attributes are those of Hugging Face's files. In shapes, T is the
tokens of a whole step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn

from msx_core.mindspore.loading import fill, load_shards
from msx_llm.models.adapted import AdapterColumns, adapted_columns, adapted_row
from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta_net import GatedDeltaNet
from msx_llm.models.kernels import Heads, Kernels, Projection
from msx_llm.models.latent_attention import LatentAttention
from msx_llm.models.linears import LayerLinears
from msx_llm.models.quantised.scheme import ROOT
from msx_llm.models.sparse import SparseMLP
from msx_llm.models.weights import Checkpoint
from msx_sdk.mindspore.parallel import Parallel


@dataclass(frozen=True)
class DecoderParts:
    """This rank's place among the ranks, and what its device computes with."""

    parallel: Parallel
    kernels: Kernels
    adapters: AdapterShape | None = None

    def heads(self, config: DecoderConfig) -> Heads:
        shards = self.parallel.tp_size
        return Heads(config.heads // shards, config.kv_heads_of(shards), config.head_dim, config.attention_scale)


@dataclass(frozen=True)
class LayerPlace:
    """`layer` counts from 0 on each rank; `window` is the place of the layer's window among those of the rank, and
    `rope` that of its rope in the config's `ropes`."""

    layer: int
    window: int
    rope: int
    sparse: bool = False
    """The layer has experts."""
    attends: bool = True
    """The layer has attention; else a gated delta net."""


class MLP(nn.Cell):  # type: ignore[misc]
    def __init__(
        self, config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, inner: int, shared: str = ""
    ) -> None:
        """`shared`: its name beside experts, where it gives its part of their sum."""
        super().__init__()
        place, sums = f"mlp.{shared}".rstrip("."), not shared
        kernels, parallel, bias, hidden = parts.kernels, parts.parallel, config.mlp_bias, config.hidden_size
        outputs = {"gate_proj": Projection(inner, parallel), "up_proj": Projection(inner, parallel)}
        self.gate_up = linears.projections(place, hidden, outputs, bias)
        self.down_proj = linears.row(f"{place}.down_proj", inner, hidden, parallel, bias, sums)
        self.gate, shape = kernels.gate(config.activation), parts.adapters if sums else None
        self.adapted = shape is not None and shape.targets >= {*outputs, "down_proj"}
        if shape is not None and self.adapted:
            self.gate_up = adapted_columns(shape, kernels, self.gate_up, "mlp", hidden, outputs)
            self.down_proj = adapted_row(shape, kernels, self.down_proj, "mlp.down_proj", inner, hidden, parallel)

    def construct(self, x: Any, columns: Any = None) -> Any:
        made = self.gate_up(x, columns) if self.adapted else self.gate_up(x)
        inner = self.gate(made[0], made[1])
        return self.down_proj(inner, columns)[0] if self.adapted else self.down_proj(inner)


def _kinds(config: DecoderConfig, layer: int) -> tuple[bool, bool]:
    return config.sparse(layer), config.attends(layer)


def mlp(config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, sparse: bool) -> nn.Cell:
    experts = config.experts
    if experts is None or not sparse:
        return MLP(config, parts, linears, config.intermediate_size)
    shared = MLP(config, parts, linears, experts.shared, experts.shared_name) if experts.shared else None
    return SparseMLP(config.hidden_size, experts, parts.kernels, linears, parts.parallel, shared)


class Attention(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, place: LayerPlace) -> None:
        super().__init__()
        kernels, parallel, heads = parts.kernels, parts.parallel, parts.heads(config)
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        shared = shared_by(parallel, config.kv_copies(parallel.tp_size))
        outputs = {"q_proj": (queries, parallel), "k_proj": (keys, shared), "v_proj": (keys, shared)}
        outputs |= {"gate_proj": (queries, parallel)} if config.gated else {}
        projections = {name: Projection(*it) for name, it in outputs.items()}
        self.qkv = linears.projections("self_attn", config.hidden_size, projections, config.qkv_bias)
        self.o_proj = linears.row("self_attn.o_proj", queries, config.hidden_size, parallel, config.o_bias)
        self.gated = config.gated
        if self.gated:
            self.gate = kernels.output_gate()
        normed = config.qk_norm or config.qk_norm_whole
        self.normed, self.normed_last = normed and not config.qk_norm_last, normed and config.qk_norm_last
        if normed:
            widths = (queries, keys) if config.qk_norm_whole else (config.head_dim, config.head_dim)
            self.q_norm, self.k_norm = (kernels.head_norm(width, config.norm_eps) for width in widths)
        self.rotary = kernels.rotary(heads, place.rope)
        if config.sinks:
            self.attend = kernels.sink_attention(heads, parallel, place.layer, place.window)
        else:
            self.attend = kernels.attention(heads, place.layer, place.window)
        shape, hidden = parts.adapters, config.hidden_size
        self.adapted = shape is not None
        if shape is not None:
            self.qkv = adapted_columns(shape, kernels, self.qkv, "self_attn", hidden, projections)
            self.o_proj = adapted_row(shape, kernels, self.o_proj, "self_attn.o_proj", queries, hidden, parallel)

    def construct(self, x: Any, step: Any, columns: Any = None) -> Any:
        made = self.qkv(x, columns) if self.adapted else self.qkv(x)
        q, k, v = made[0], made[1], made[2]
        if self.normed:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = self.rotary(q, k, step)
        if self.normed_last:
            q, k = self.q_norm(q), self.k_norm(k)
        x = self.attend(q, k, v, step)
        if self.gated:
            x = self.gate(x, made[3])
        return self.o_proj(x, columns)[0] if self.adapted else self.o_proj(x)


def attention(config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, place: LayerPlace) -> nn.Cell:
    if config.latent is None:
        return Attention(config, parts, linears, place)
    whole = shared_by(parts.parallel, parts.parallel.tp_size)
    where = place.layer, place.window
    return LatentAttention(config, config.latent, parts.kernels, parts.parallel, whole, where)


def shared_by(parallel: Parallel, copies: int) -> Parallel:
    """A rank's place among the parts, where this many neighbouring ranks hold the same part."""
    return replace(parallel, rank=parallel.tp_rank // copies, stages=1, tp_size=parallel.tp_size // copies)


class ResidualSum(nn.Cell):  # type: ignore[misc]
    """Stands for a norm before a sublayer, where there is none."""

    def __init__(self, kernels: Kernels) -> None:
        super().__init__()
        self.add = kernels.add()

    def construct(self, x: Any, residual: Any = None) -> Any:
        if residual is not None:
            x = self.add(residual, x)
        return x, x


class DecoderLayer(nn.Cell):  # type: ignore[misc]
    """Takes and returns what a sublayer made and, beside it, the sum of all before: the sum of both is the state.

    Norms have the names of `weights.NORMS`; `Checkpoint` knows what they are called in the files.
    """

    def __init__(self, config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, place: LayerPlace) -> None:
        super().__init__()
        kernels, names, sizes = parts.kernels, config.norms, (config.hidden_size, config.norm_eps)
        self.input_layernorm = kernels.norm(*sizes) if names.before_attention else ResidualSum(kernels)
        self.attends = place.attends
        if config.delta is None or self.attends:
            self.self_attn = attention(config, parts, linears, place)
        else:
            self.linear_attn = GatedDeltaNet(config, config.delta, kernels, linears, parts.parallel)
        self.post_attention_layernorm = kernels.norm(*sizes) if names.before_mlp else ResidualSum(kernels)
        self.mlp = mlp(config, parts, linears, place.sparse)
        self.norms_attention, self.norms_mlp = bool(names.after_attention), bool(names.after_mlp)
        if self.norms_attention:
            self.attention_norm = kernels.norm(*sizes)
        if self.norms_mlp:
            self.mlp_norm = kernels.norm(*sizes)
        self.adapted, self.adapted_mlp = parts.adapters is not None, isinstance(self.mlp, MLP)

    @property
    def cache(self) -> Any:
        """The cell that keeps what the layer knows of its texts."""
        return self.self_attn.attend if self.attends else self.linear_attn.attend

    def construct(self, x: Any, residual: Any, step: Any, columns: Any = None) -> Any:
        x, residual = self.input_layernorm(x, residual)
        if self.attends:
            x = self.self_attn(x, step, columns) if self.adapted else self.self_attn(x, step)
        else:
            x = self.linear_attn(x, step)
        if self.norms_attention:
            x = self.attention_norm(x)[0]
        x, residual = self.post_attention_layernorm(x, residual)
        x = self.mlp(x, columns) if self.adapted and self.adapted_mlp else self.mlp(x)
        if self.norms_mlp:
            x = self.mlp_norm(x)[0]
        return x, residual


class DecoderBody(nn.Cell):  # type: ignore[misc]
    """The layers `own` of the model, after the embedding on the first stage. Call `prepare` before the first use."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, own: range) -> None:
        super().__init__()
        kernels, windows = parts.kernels, tuple(dict.fromkeys(config.windows[n] for n in own))
        self.first, self.own, self.scale = parts.parallel.first_stage, own, config.embedding_scale
        if self.first:
            self.embed_tokens = kernels.embedding(config.vocab_size, config.hidden_size, parts.parallel)
        self.step = kernels.step_inputs(config, parts.heads(config), windows)
        self.layers = nn.CellList(
            [
                DecoderLayer(
                    config,
                    parts,
                    LayerLinears(kernels, config.quantised, f"{ROOT}layers.{n}"),
                    LayerPlace(place, windows.index(config.windows[n]), config.rope_of(n), *_kinds(config, n)),
                )
                for place, n in enumerate(own)
            ]
        )
        self.add, self.adapted = kernels.add(), parts.adapters is not None
        if parts.adapters is not None:
            self.columns = AdapterColumns(parts.adapters, kernels)

    def construct(self, x: Any, *inputs: Any) -> Any:
        """x: ids [T] on the first stage, else what the one before returned; `inputs` of the kernels' `StepInputs`, and
        behind them, where there are adapters, that of each token [T] -> [T, hidden]"""
        if self.first:
            x = self.embed_tokens(x)
        columns = None
        if self.adapted:
            columns, inputs = self.columns(inputs[-1]), inputs[:-1]
        step, residual = self.step(*inputs), None
        for layer in self.layers:
            x, residual = layer(x, residual, step, columns)
        return self.add(residual, x)

    def load(self, checkpoint: Checkpoint, embedding: bool = True) -> None:
        """Reads this rank's part of the files. `embedding`: it is not read with the head."""
        if self.first and embedding:
            load_shards(self.embed_tokens, checkpoint, f"{checkpoint.prefix}embed_tokens")
            if self.scale != 1:
                scale_in_place(self.embed_tokens.weight, self.scale)
        for number, layer in zip(self.own, self.layers, strict=True):
            load_shards(layer, checkpoint, f"{checkpoint.prefix}layers.{number}")


def scale_in_place(parameter: Any, factor: float) -> None:
    """The factor is rounded to the parameter's data type, as transformers does."""
    rounded = Tensor(factor, ms.float32).astype(parameter.dtype).astype(ms.float32)
    fill(parameter, (parameter.astype(ms.float32) * rounded).asnumpy())


class LanguageModelHead(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: DecoderConfig, parts: DecoderParts) -> None:
        super().__init__()
        self.norm = parts.kernels.norm(config.hidden_size, config.norm_eps)
        self.lm_head = parts.kernels.head(config.vocab_size, config.hidden_size, parts.parallel)
        self.gather = parts.kernels.gather()

    def construct(self, x: Any, rows: Any = None) -> Any:
        """The logits of some rows, or of all -> float32 [rows, vocab]"""
        if rows is not None:
            x = self.gather(x, rows, 0)
        return self.lm_head(self.norm(x)[0])


class Decoder(nn.Cell):  # type: ignore[misc]
    """`body`, and on the last stage `head`; together they are one decoding step."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, own: range) -> None:
        super().__init__()
        self.tied, self.parallel, self.dtype = config.tied, parts.parallel, parts.kernels.dtype
        self.body = DecoderBody(config, parts, own)
        if parts.parallel.last_stage:
            self.head = LanguageModelHead(config, parts)
        self.shared = config.shares_weight(parts.parallel.stages)
        if self.shared:
            parts.kernels.tie(self.body.embed_tokens, self.head.lm_head)

    def construct(self, x: Any, *inputs: Any) -> Any:
        return self.head(self.body(x, *inputs))

    def load(self, checkpoint: Checkpoint) -> None:
        """Reads this rank's part of the files."""
        self.body.load(checkpoint, embedding=not self.shared)
        if self.parallel.last_stage:
            embedding = f"{checkpoint.prefix}embed_tokens"
            load_shards(self.head.norm, checkpoint, f"{checkpoint.prefix}norm")
            load_shards(self.head.lm_head, checkpoint, embedding if self.tied else "lm_head")
