"""BERT and related encoders in MindSpore. Weights are stored as [in, out], the transpose of the file: see
docs/mindspore-models.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import initializer

from msx_core.mindspore.loading import fill, load_shards, without_data
from msx_core.mindspore.weights import Weights
from msx_llm.embedding.activations import make_activation
from msx_llm.embedding.config import ENCODERS, SEGMENTED, EncoderConfig
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.layers import ColumnParallelLinear, RowParallelLinear
from msx_sdk.mindspore.parallel import Parallel

WORDS = "embeddings.word_embeddings.weight"


@dataclass(frozen=True)
class LayerTensorNames:
    """The names of a layer's tensors in the file, after the layer's own prefix."""

    layers: str = "encoder.layer"
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    output: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    up: str = "intermediate.dense"
    down: str = "output.dense"
    norm: str = "output.LayerNorm"


DISTILBERT = LayerTensorNames(
    layers="transformer.layer",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    output="attention.out_lin",
    attention_norm="sa_layer_norm",
    up="ffn.lin1",
    down="ffn.lin2",
    norm="output_layer_norm",
)


class EncoderNorm(nn.Cell):  # type: ignore[misc]
    """Layer normalisation over the last axis."""

    def __init__(self, config: EncoderConfig, source: str, dtype: Any) -> None:
        super().__init__()
        self.source = source
        self.scale = Parameter(initializer("ones", (config.hidden_size,), dtype), name="scale")
        self.shift = Parameter(initializer("zeros", (config.hidden_size,), dtype), name="shift")
        self.norm = ops.LayerNorm(-1, -1, config.layer_norm_eps)

    def construct(self, x: Any) -> Any:
        return self.norm(x, self.scale, self.shift)[0]

    def load_shard(self, weights: Weights, name: str) -> None:
        """Files that were converted from TensorFlow have gamma and beta."""
        for parameter, new, old in ((self.scale, "weight", "gamma"), (self.shift, "bias", "beta")):
            known = old if f"{self.source}.{old}" in weights else new
            fill(parameter, _read(weights, f"{self.source}.{known}", parameter.shape))


class Embeddings(nn.Cell):  # type: ignore[misc]
    """ids [B, P] of integers → [B, P, hidden]; so are `segments`, 1 in the second text of a pair, if there are pairs"""

    def __init__(self, config: EncoderConfig, prefix: str, dtype: Any) -> None:
        super().__init__()
        self.prefix, self.config = prefix, config
        self.words = Parameter(initializer("zeros", (config.vocab_size, config.hidden_size), dtype), name="words")
        # The type of the first segment is part of the positions; that of the second is what it adds.
        self.places = Parameter(initializer("zeros", (config.context, config.hidden_size), dtype), name="places")
        self.segments = Parameter(initializer("zeros", (2, config.hidden_size), dtype), name="segments")
        self.norm = EncoderNorm(config, f"{prefix}embeddings.LayerNorm", dtype)

    def construct(self, ids: Any, segments: Any = None) -> Any:
        x = ops.gather(self.words, ids, 0) + self.places[: ids.shape[1]]
        return self.norm(x if segments is None else x + ops.gather(self.segments, segments, 0))

    def load_shard(self, weights: Weights, name: str) -> None:
        config, place = self.config, f"{self.prefix}embeddings."
        fill(self.words, _read(weights, f"{self.prefix}{WORDS}", self.words.shape))
        shape = config.max_position_embeddings, config.hidden_size
        table = _read(weights, f"{place}position_embeddings.weight", shape)
        rows = table[config.first_position :].astype(np.float32)  # a sum of halves would be rounded
        types = f"{place}token_type_embeddings.weight"
        kinds = weights.read(types).astype(np.float32) if types in weights else np.zeros((1, rows.shape[1]), np.float32)
        second = kinds[1:2] if config.model_type in SEGMENTED and len(kinds) > 1 else kinds[:1]
        fill(self.places, rows + kinds[:1])
        fill(self.segments, np.concatenate([kinds[:1], second]) - kinds[:1])


class EncoderAttention(nn.Cell):  # type: ignore[misc]
    """Every token sees every other one. In the shapes below B is texts, P tokens, D the size of a head."""

    def __init__(self, config: EncoderConfig, names: LayerTensorNames, place: str, dtype: Any) -> None:
        super().__init__()
        size, one = config.hidden_size, Parallel()
        self.heads, self.size = config.num_attention_heads, size // config.num_attention_heads
        self.scale = self.size**-0.5
        self.query = ColumnParallelLinear(size, size, one, source=f"{place}.{names.query}", dtype=dtype)
        self.key = ColumnParallelLinear(size, size, one, source=f"{place}.{names.key}", dtype=dtype)
        self.value = ColumnParallelLinear(size, size, one, source=f"{place}.{names.value}", dtype=dtype)
        self.output = RowParallelLinear(size, size, one, source=f"{place}.{names.output}", dtype=dtype)
        self.scores, self.mix = ops.BatchMatMul(transpose_b=True), ops.BatchMatMul()
        self.softmax = ops.Softmax(-1)

    def construct(self, x: Any, mask: Any) -> Any:
        """x [B, P, hidden], mask [B, heads, P, P] additive → [B, P, hidden]"""
        q, k, v = self.split(self.query(x) * self.scale), self.split(self.key(x)), self.split(self.value(x))
        mixed = self.mix(self.softmax(self.scores(q, k) + mask), v)
        return self.output(mixed.transpose((0, 2, 1, 3)).reshape(x.shape))

    def split(self, x: Any) -> Any:
        batch, length, _ = x.shape
        return x.reshape((batch, length, self.heads, self.size)).transpose((0, 2, 1, 3))  # [B, heads, P, D]


class EncoderLayer(nn.Cell):  # type: ignore[misc]
    def __init__(self, config: EncoderConfig, names: LayerTensorNames, place: str, dtype: Any) -> None:
        super().__init__()
        size, inner, one = config.hidden_size, config.intermediate_size, Parallel()
        self.attention = EncoderAttention(config, names, place, dtype)
        self.attention_norm = EncoderNorm(config, f"{place}.{names.attention_norm}", dtype)
        self.up = ColumnParallelLinear(size, inner, one, source=f"{place}.{names.up}", dtype=dtype)
        self.down = RowParallelLinear(inner, size, one, source=f"{place}.{names.down}", dtype=dtype)
        self.norm = EncoderNorm(config, f"{place}.{names.norm}", dtype)
        self.activate = make_activation(config.hidden_act)

    def construct(self, x: Any, mask: Any) -> Any:
        x = self.attention_norm(x + self.attention(x, mask))
        return self.norm(x + self.down(self.activate(self.up(x))))


class Encoder(nn.Cell):  # type: ignore[misc]
    """ids [B, P], mask [B, 1, 1, P] additive, of pairs segments [B, P] → the states [B, P, hidden]"""

    def __init__(self, config: EncoderConfig, prefix: str, dtype: Any) -> None:
        super().__init__()
        names = DISTILBERT if config.model_type == "distilbert" else LayerTensorNames()
        places = [f"{prefix}{names.layers}.{index}" for index in range(config.num_hidden_layers)]
        self.embeddings, self.heads, self.tile = (
            Embeddings(config, prefix, dtype),
            config.num_attention_heads,
            ops.Tile(),
        )
        self.layers = nn.CellList([EncoderLayer(config, names, place, dtype) for place in places])

    def construct(self, ids: Any, mask: Any, segments: Any = None) -> Any:
        x = self.embeddings(ids, segments)
        # Broadcast in every layer, the mask would keep four buffers of the scores' size for each.
        mask = self.tile(mask, (1, self.heads, ids.shape[1], 1))
        for layer in self.layers:
            x = layer(x, mask)
        return x


def load_encoder(folder: Path, config: EncoderConfig, dtype: str) -> Encoder:
    """Raises HandlerLoadError for weights that do not fit `config`."""
    with Weights(folder) as weights:
        with without_data():
            encoder = Encoder(config, _prefix(config, weights), getattr(ms, dtype))
        load_shards(encoder, weights)
    return encoder


def _prefix(config: EncoderConfig, weights: Weights) -> str:
    """The prefix of the encoder's names in the file: empty, or the encoder's place in a larger network."""
    prefixes = ("", f"{ENCODERS[config.model_type]}.")
    found = next((prefix for prefix in prefixes if f"{prefix}{WORDS}" in weights), None)
    if found is None:
        raise HandlerLoadError(f"the weights have no tensor {' and no '.join(prefix + WORDS for prefix in prefixes)}")
    return found


def _read(weights: Weights, name: str, wanted: tuple[int, ...]) -> Any:
    if name not in weights or weights.shape(name) != tuple(wanted):
        found = f"has the shape {weights.shape(name)}" if name in weights else "is missing"
        raise HandlerLoadError(f"{name}: in the file it {found}, config.json wants {tuple(wanted)}")
    return weights.read(name)
