"""How a layer's tensors lie in the files, where that is not how the engine has them.

The engine has a tensor for each linear layer, and heads whose halves turn together over their whole width. Files may
have several layers in one tensor, neighbours that turn together, and numbers of a head that do not turn: these get the
angle 0. Scores do not depend on the order of a head's numbers, if queries and keys have the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from msx_llm.models.config import DecoderConfig

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
FUSED = {
    "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
    "linear_attn.in_proj_qkv": ("linear_attn.in_proj_q", "linear_attn.in_proj_k", "linear_attn.in_proj_v"),
}
"""Names of tensors that hold several linear layers, one after another."""
NORMS = {
    "input_layernorm": "before_attention",
    "attention_norm": "after_attention",
    "post_attention_layernorm": "before_mlp",
    "mlp_norm": "after_mlp",
    "self_attn.q_norm": "query",
    "self_attn.k_norm": "key",
}
"""The engine's names of a layer's norms, and their members in `LayerNorms`."""
GATE = "self_attn.gate_proj"
"""The engine's name of a gate that lies beside the queries."""
UNSHIFTED = ("linear_attn.norm",)
"""Norms to whose weights nothing is added."""
KEYS, VALUES = "self_attn.k_proj", "self_attn.v_proj"
_TURNED = ("q_proj", "k_proj", "q_norm", "k_norm")


@dataclass(frozen=True)
class HeadPart:
    """`size` rows from `first` on, of each head of `whole` rows."""

    whole: int
    first: int
    size: int

    def rows(self, wanted: slice) -> slice:
        return slice(wanted.start // self.size * self.whole, wanted.stop // self.size * self.whole)

    def taken(self, array: Array) -> Array:
        own = array.reshape(-1, self.whole, *array.shape[1:])[:, self.first : self.first + self.size]
        return own.reshape(-1, *array.shape[1:])


@dataclass(frozen=True)
class TensorSource:
    """The tensor `name` of the files, from the row `first` on."""

    name: str
    shape: Shape
    first: int = 0
    order: Array | None = None
    """The place in the file of each number of a head."""
    offset: float = 0.0
    factor: float = 1.0
    part: HeadPart | None = None
    """None: all rows of a head."""

    def rows(self, wanted: slice) -> slice:
        """Rows of the file, for rows of the engine's tensor."""
        start, stop, _ = wanted.indices(self.shape[0])
        own = slice(self.first + start, self.first + stop)
        return own if self.part is None else self.part.rows(own)

    def arranged(self, array: Array) -> Array:
        """Takes whole heads."""
        if self.part is not None:
            array = self.part.taken(array)
        if self.order is not None:
            array = array.reshape(-1, len(self.order), *array.shape[1:])[:, self.order].reshape(array.shape)
        if not self.offset and self.factor == 1:
            return array
        return (array.astype(np.float32) + np.float32(self.offset)) * np.float32(self.factor)


def holders(fused: tuple[str, ...]) -> dict[str, str]:
    """Name the layer that holds each linear layer beside others."""
    return {own: whole for whole in fused for own in FUSED[whole]}


def layer_sources(config: DecoderConfig, shapes: Iterator[tuple[str, Shape]]) -> Iterator[tuple[str, TensorSource]]:
    """Takes the engine's tensors of a layer in their order."""
    fused, parts = holders(config.fused), head_parts(config)
    orders, taken = layer_orders(config), dict.fromkeys(config.fused, 0)
    for name, shape in shapes:
        layer, _, kind = name.rpartition(".")
        offset = config.norm_offset if layer.endswith("norm") and layer not in UNSHIFTED else 0.0
        first, stored = 0, _stored(config, layer)
        if layer in fused:
            stored = fused[layer]
            first, taken[stored] = taken[stored], taken[stored] + shape[0]
        stored, part = parts.get(layer, (stored, None))
        turned = orders.get(layer.rpartition(".")[2])
        source = f"{stored}.{kind}".lstrip(".")
        yield name, TensorSource(_named(config, source), shape, first, turned, offset, part=part)


def _stored(config: DecoderConfig, layer: str) -> str:
    if config.values_of_keys and layer == VALUES:
        return KEYS
    stored: str = getattr(config.norms, NORMS[layer]) if layer in NORMS else layer
    return stored


def head_parts(config: DecoderConfig) -> dict[str, tuple[str, HeadPart]]:
    """Linear layers that are a part of each head of a file's one."""
    parts, size = dict[str, tuple[str, HeadPart]](), config.head_dim
    if config.gated:
        queries = "self_attn.q_proj"
        parts |= {queries: (queries, HeadPart(2 * size, 0, size)), GATE: (queries, HeadPart(2 * size, size, size))}
    if config.delta is not None:
        for name, stored, *sizes in config.delta.head_parts():
            parts[f"linear_attn.{name}"] = f"linear_attn.{stored}", HeadPart(*sizes)
    return parts


def _named(config: DecoderConfig, name: str) -> str:
    for own, stored in () if config.experts is None else config.experts.names:
        name = name.replace(own, stored)
    return name


def layer_orders(config: DecoderConfig) -> dict[str, Array]:
    """Place in the file of each number of a head, for layers whose numbers lie otherwise."""
    if config.latent is not None:
        return config.latent.orders()
    order = head_order(config)
    return {} if order is None else dict.fromkeys(_TURNED, order)


def head_order(config: DecoderConfig) -> Array | None:
    """None: as in the file."""
    size, turning = config.head_dim, config.turning
    if turning == size and not config.rotary_pairs:
        return None
    turned, still = np.arange(turning), np.arange(turning, size)
    first, second = (turned[::2], turned[1::2]) if config.rotary_pairs else np.split(turned, 2)
    begin, end = np.split(still, 2)
    order: Array = np.concatenate([first, begin, second, end])
    return order
