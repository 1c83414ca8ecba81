"""Inputs of each layer beside the states: a part of an embedding of its own, and of a product of the token's
first state. It is gated by the layer's state, and added to it."""

from __future__ import annotations

from typing import Any

from mindspore import nn, ops

from msx_core.mindspore.loading import fill, load_shards
from msx_core.mindspore.weights import Weights
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Kernels
from msx_llm.models.layer_shapes import EMBEDDING, NORM, PRODUCT
from msx_llm.models.linears import LayerLinears
from msx_sdk.mindspore.parallel import Parallel

HALF = 0.5**0.5
"""The factor of a sum of two, which keeps their size."""


class LayerInputs(nn.Cell):  # type: ignore[misc]
    """ids [T], states [T, hidden] -> of each layer [T, size]. Only the embedding is divided over the ranks."""

    loads_inner = True

    def __init__(self, config: DecoderConfig, kernels: Kernels, parallel: Parallel, whole: Parallel) -> None:
        """`whole`: a group of this rank alone"""
        super().__init__()
        size, self.width = config.layer_inputs, config.layers * config.layer_inputs
        self.embedding = kernels.embedding(config.layer_vocabulary, self.width, parallel)
        self.product = kernels.row_linear(config.hidden_size, self.width, whole, bias=False)
        self.norm = kernels.head_norm(size, config.norm_eps * config.hidden_size)  # files divide states by its root
        self.add, self.parts, self.factor = kernels.add(), ops.Split(1, config.layers), HALF * size**0.5

    def construct(self, ids: Any, states: Any) -> Any:
        made = self.norm(self.product(states)).reshape((-1, self.width))
        return self.parts(self.add(made, self.embedding(ids) * self.factor))

    def load_shard(self, weights: Weights, name: str) -> None:
        """`name` is the prefix of the files."""
        load_shards(self.embedding, weights, name + EMBEDDING)
        load_shards(self.product, weights, name + PRODUCT)
        fill(self.norm.weight, weights.read(f"{name}{NORM}.weight") * HALF)


class LayerInputGate(nn.Cell):  # type: ignore[misc]
    """x [T, hidden], the layer's input [T, size] -> what it adds to x. Every rank has all of it."""

    loads_inner = True

    def __init__(self, config: DecoderConfig, kernels: Kernels, linears: LayerLinears, whole: Parallel) -> None:
        super().__init__()
        size, hidden = config.layer_inputs, config.hidden_size
        self.down = linears.row("per_layer_input_gate", hidden, size, whole, bias=False)
        self.up = linears.row("per_layer_projection", size, hidden, whole, bias=False)
        self.gate, self.norm = kernels.gate(config.activation), kernels.norm(hidden, config.norm_eps)

    def construct(self, x: Any, given: Any) -> Any:
        return self.norm(self.up(self.gate(self.down(x), given)))[0]

    def load_shard(self, weights: Weights, name: str) -> None:
        place = name.rpartition(".")[0]
        load_shards(self.down, weights, f"{place}.per_layer_input_gate")
        load_shards(self.up, weights, f"{place}.per_layer_projection")
        load_shards(self.norm, weights, f"{place}.post_per_layer_input_norm")
