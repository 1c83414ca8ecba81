"""A rank's place among the ranks, and a layer's among those of a rank."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msx_llm.models.adapter_shape import AdapterShape
from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Heads, Kernels, LayerKind
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

    def kind(self, config: DecoderConfig, layer: int) -> LayerKind:
        return LayerKind(config.windows[layer], config.rope_of(layer), self.heads(config.of_layer(layer)))


@dataclass(frozen=True)
class LayerPlace:
    """`layer` counts from 0 on each rank; `kind` is the place of the layer's kind among those of the rank."""

    layer: int
    kind: int
    sparse: bool = False
    """The layer has experts."""
    attends: bool = True
    """The layer has attention; else a gated delta net."""
    first: int = 0
    """The number of the rank's first layer in the model."""


def shared_by(parallel: Parallel, copies: int | None = None) -> Parallel:
    """A rank's place among the parts, where this many neighbouring ranks hold the same part; None: all ranks do."""
    copies = copies or parallel.tp_size
    return replace(parallel, rank=parallel.tp_rank // copies, stages=1, tp_size=parallel.tp_size // copies)
