"""How one linear layer is quantised, and what a rank reads of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import msgspec
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
NPU_GROUPS = 32
"""The number of inputs in a group is a multiple of this in `WeightQuantBatchMatmul`."""
Activations = Literal["float", "static", "dynamic"]


class Tensors(Protocol):
    """The files, by the names in them."""

    def __contains__(self, name: str) -> bool: ...

    def read(self, name: str, *index: slice) -> Any: ...


@dataclass(frozen=True)
class StaticInputs:
    """All inputs are rounded by one scale: q = round(x / scale) + offset, and the result is
    (q @ codes + bias) * factors. `bias` int32 and `factors` float32 are [out]; the bias makes up for the offset, and
    is all that the layer adds."""

    scale: float
    offset: int
    bias: Array
    factors: Array
    added: Array
    """float32 [out]: what is left of the bias where inputs are not rounded."""

    def with_heads(self, order: Array) -> StaticInputs:
        """See `QuantisedMatrix.with_heads`."""
        bias, factors, added = (in_heads(it, order) for it in (self.bias, self.factors, self.added))
        return replace(self, bias=bias, factors=factors, added=added)


@dataclass(frozen=True)
class QuantisedMatrix:
    """A part of a layer's weight, [in, out]: (codes - zeros) * scales, by groups of neighbouring inputs."""

    codes: Array
    """int8 [in, out], between -2**(bits - 1) and 2**(bits - 1) - 1."""
    scales: Array
    """float32 [groups, out]"""
    zeros: Array | None = None
    """float32 [groups, out]; None: all are zero."""
    order: Array | None = None
    """The layer's input that each row of the codes belongs to; None: as they are."""
    static: StaticInputs | None = None

    @property
    def numbers(self) -> Array:
        """float32 [in, out]: what the codes stand for."""
        size = len(self.codes) // len(self.scales)
        zeros = np.float32(0) if self.zeros is None else np.repeat(self.zeros, size, axis=0)
        rows: Array = (self.codes - zeros) * np.repeat(self.scales, size, axis=0)
        if self.order is None:
            return rows
        own = np.empty_like(rows)
        own[self.order] = rows
        return own

    def with_heads(self, order: Array) -> QuantisedMatrix:
        """The numbers of each head in this order, which has their places until now."""
        zeros = None if self.zeros is None else in_heads(self.zeros, order)
        static = None if self.static is None else self.static.with_heads(order)
        codes, scales = in_heads(self.codes, order), in_heads(self.scales, order)
        return replace(self, codes=codes, scales=scales, zeros=zeros, static=static)


def in_heads(array: Array, order: Array) -> Array:
    """[..., heads * numbers]"""
    heads = array.reshape(*array.shape[:-1], -1, len(order))
    taken: Array = heads[..., order]
    return taken.reshape(array.shape)


class LinearFormat(msgspec.Struct, frozen=True, kw_only=True):
    """Format of a quantised linear layer, whatever the method. `name` is that of the layer in the files."""

    bits: Literal[4, 8] = 8
    group: int | None = None
    """Inputs that share a scale; None: all."""
    zeros: bool = False
    """Codes have zero points."""
    ordered: bool = False
    """Groups are of inputs that are no neighbours: the layer sorts its inputs first."""
    activations: Activations = "float"
    brings_bias: bool = False
    """The layer's bias is that of `StaticInputs`."""

    @property
    def grouped_for_npus(self) -> bool:
        """An NPU's operator takes the groups; else weights become numbers there."""
        return self.group is None or self.group % NPU_GROUPS == 0

    @property
    def by_output(self) -> bool:
        """Each output has one scale, and no layer sorts its inputs."""
        return self.group is None and not self.ordered

    def groups(self, inputs: int) -> int:
        return 1 if self.group is None else inputs // self.group

    def tensors(self, outputs: int, inputs: int) -> Mapping[str, Shape]:
        """The tensors of a layer, by what is behind its name."""
        raise NotImplementedError

    def further(self) -> frozenset[str]:
        """Tensors that a file may have beside the required ones."""
        return frozenset()

    def read(self, files: Tensors, name: str, inputs: slice, outputs: slice) -> QuantisedMatrix:
        """Inputs begin and end with a group. Raises HandlerLoadError."""
        raise NotImplementedError
