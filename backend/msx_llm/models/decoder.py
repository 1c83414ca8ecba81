"""The decoder of all families, or the part of it that one rank holds, over a cache of keys and values.

It knows no device: `kernels` make its cells. Names of attributes are those of Hugging Face's files. In shapes, T is the
tokens of a whole step.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill, load_shards
from msx_llm.models.adapted import AdapterColumns, adapted_columns, adapted_row
from msx_llm.models.attention import attention
from msx_llm.models.beside_experts import ExpertsBeside
from msx_llm.models.config import DecoderConfig
from msx_llm.models.delta_net import GatedDeltaNet
from msx_llm.models.kernels import Kernels, Projection, distinct
from msx_llm.models.layer_inputs import LayerInputGate, LayerInputs
from msx_llm.models.linears import LayerLinears
from msx_llm.models.parts import DecoderParts, LayerPlace, shared_by
from msx_llm.models.quantised.scheme import ROOT
from msx_llm.models.sparse import SparseMLP
from msx_llm.models.weights import Checkpoint


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


def mlp(config: DecoderConfig, parts: DecoderParts, linears: LayerLinears, sparse: bool) -> nn.Cell:
    experts = config.experts
    if experts is None or not sparse:
        return MLP(config, parts, linears, config.intermediate_size)
    if experts.beside:
        dense = MLP(config, parts, linears, config.intermediate_size)
        return ExpertsBeside(config, experts, parts.kernels, linears, parts.parallel, dense)
    shared = MLP(config, parts, linears, experts.shared, experts.shared_name) if experts.shared else None
    return SparseMLP(config.hidden_size, experts, parts.kernels, linears, parts.parallel, shared)


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
    """Takes and returns what a sublayer made and, beside it, the sum of all before: the sum of both is the state. With
    `layer_factors` it returns the state, and None beside it.

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
        self.beside = isinstance(self.mlp, ExpertsBeside)
        self.gated, self.whole = config.layer_inputs > 0, config.layer_factors
        self.add, self.mul = kernels.add(), kernels.mul()
        if self.gated:
            self.input_gate = LayerInputGate(config, kernels, linears, shared_by(parts.parallel))
        if self.whole:
            self.layer_scalar = Parameter(initializer("ones", (1,), kernels.dtype), name="layer_scalar")

    @property
    def cache(self) -> Any:
        """The cell that keeps what the layer knows of its texts."""
        return self.self_attn.attend if self.attends else self.linear_attn.attend

    def construct(self, x: Any, residual: Any, step: Any, columns: Any = None, given: Any = None) -> Any:
        x, residual = self.input_layernorm(x, residual)
        if self.attends:
            x = self.self_attn(x, step, columns) if self.adapted else self.self_attn(x, step)
        else:
            x = self.linear_attn(x, step)
        if self.norms_attention:
            x = self.attention_norm(x)[0]
        x, residual = self.post_attention_layernorm(x, residual)
        if self.beside:
            x = self.mlp(x, residual)
        else:
            x = self.mlp(x, columns) if self.adapted and self.adapted_mlp else self.mlp(x)
        if self.norms_mlp:
            x = self.mlp_norm(x)[0]
        if not self.whole:
            return x, residual
        x = self.add(residual, x)
        if self.gated:
            x = self.add(x, self.input_gate(x, given))
        return self.mul(x, self.layer_scalar), None


class DecoderBody(nn.Cell):  # type: ignore[misc]
    """The layers `own` of the model, after the embedding on the first stage. Call `prepare` before the first use."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts, own: range) -> None:
        super().__init__()
        kernels, (kinds, places) = parts.kernels, distinct(parts.kind(config, n) for n in own)
        self.kinds = kinds
        self.first, self.own, self.scale = parts.parallel.first_stage, own, config.embedding_scale
        if self.first:
            self.embed_tokens = kernels.embedding(config.vocab_size, config.hidden_size, parts.parallel)
        self.gives = config.layer_inputs > 0
        if self.gives:
            self.inputs = LayerInputs(config, kernels, parts.parallel, shared_by(parts.parallel))
        self.step = kernels.step_inputs(config, kinds)
        self.layers = nn.CellList(
            [
                DecoderLayer(
                    config.of_layer(n),
                    parts,
                    LayerLinears(kernels, config.quantised, f"{ROOT}layers.{n}"),
                    LayerPlace(place, places[place], config.sparse(n), config.attends(n), own.start),
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
        ids, columns = x, None
        given: Any = None
        if self.first:
            x = self.embed_tokens(x)
        if self.gives:
            given = self.inputs(ids, x)
        if self.adapted:
            columns, inputs = self.columns(inputs[-1]), inputs[:-1]
        step, residual, number = self.step(*inputs), None, 0
        for layer in self.layers:
            x, residual = layer(x, residual, step, columns, given[number] if self.gives else None)
            number = number + 1
        return x if residual is None else self.add(residual, x)

    def begin(self, x: Any, *inputs: Any) -> Any:
        """-> the states before the first layer, what each layer gets of the step, and the adapters' columns if there
        are any"""
        if self.first:
            x = self.embed_tokens(x)
        if self.adapted:
            return x, self.step(*inputs[:-1]), self.columns(inputs[-1])
        return x, self.step(*inputs)

    def load(self, checkpoint: Checkpoint, embedding: bool = True) -> None:
        """Reads this rank's part of the files. `embedding`: it is not read with the head."""
        if self.first and embedding:
            load_shards(self.embed_tokens, checkpoint, f"{checkpoint.prefix}embed_tokens")
            if self.scale != 1:
                scale_in_place(self.embed_tokens.weight, self.scale)
        if self.gives:
            load_shards(self.inputs, checkpoint, checkpoint.prefix)
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
        self.gather, self.cap, self.tanh = parts.kernels.gather(), config.logits_cap, ops.Tanh()

    def construct(self, x: Any, rows: Any = None) -> Any:
        """The logits of some rows, or of all -> float32 [rows, vocab]"""
        if rows is not None:
            x = self.gather(x, rows, 0)
        logits = self.lm_head(self.norm(x)[0])
        return logits if self.cap is None else self.tanh(logits / self.cap) * self.cap


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

    def end(self, residual: Any, x: Any, rows: Any) -> Any:
        """Make logits of what the last layer returned: of some rows, or of all."""
        return self.head(self.body.add(residual, x), rows)

    def load(self, checkpoint: Checkpoint) -> None:
        """Reads this rank's part of the files."""
        self.body.load(checkpoint, embedding=not self.shared)
        if self.parallel.last_stage:
            embedding = f"{checkpoint.prefix}embed_tokens"
            load_shards(self.head.norm, checkpoint, f"{checkpoint.prefix}norm")
            load_shards(self.head.lm_head, checkpoint, embedding if self.tied else "lm_head")
