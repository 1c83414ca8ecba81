"""The hub's tensors that MindFormers' files have otherwise than one by one: heads of DeepSeek's latent attention, whose
parts are tensors of their own, and experts, which are stacked.

As its converters write them: `mla_weight_split` of research/deepseek2, `convert_weight.py` of research/deepseek3
(mindspore-lab/mindformers). What turns lies there as halves, in the hub's files as neighbours.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from msx_llm.models.config import DecoderConfig
from msx_llm.models.experts import ExpertsConfig
from msx_llm.models.latent import LatentConfig
from msx_sdk.errors import HandlerLoadError

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]
ShapeOf = Callable[[str], Shape]
Read = Callable[[str, tuple[slice, ...]], Array]


class Assembled(Protocol):
    """A tensor of the hub, made of others."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors in the file."""

    def shape(self, of: ShapeOf) -> Shape: ...

    def read(self, read: Read, index: tuple[slice, ...]) -> Array: ...


@dataclass(frozen=True)
class DividedHeads:
    """[heads * numbers, width]: each tensor of the file has so many (`sizes`) of each head's numbers."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    heads: int
    turning: tuple[bool, ...]
    """Whose numbers turn."""

    def shape(self, of: ShapeOf) -> Shape:
        """Raises HandlerLoadError: the sum alone could fit."""
        for name, size in zip(self.names, self.sizes, strict=True):
            if len(found := of(name)) != 2 or found[0] != self.heads * size:
                raise HandlerLoadError(
                    f"{name} has the shape {found}; config.json makes it {self.heads * size} rows: {size} for each of "
                    f"{self.heads}"
                )
        return (self.heads * sum(self.sizes), *of(self.names[0])[1:])

    def read(self, read: Read, index: tuple[slice, ...]) -> Array:
        """Read the rows of those heads alone that the wanted rows belong to."""
        numbers, (rows, *others) = sum(self.sizes), index or (slice(None),)
        start, stop, _ = rows.indices(self.heads * numbers)
        first, last = start // numbers, -(-stop // numbers)
        parts = []
        for name, size, turns in zip(self.names, self.sizes, self.turning, strict=True):
            part = read(name, (slice(first * size, last * size), *others)).reshape(last - first, size, -1)
            parts.append(as_neighbours(part) if turns else part)
        whole: Array = np.concatenate(parts, axis=1)
        return whole.reshape(-1, whole.shape[-1])[start - first * numbers : stop - first * numbers]


@dataclass(frozen=True)
class OfStack:
    """[out, in] of one expert; `transposed`: [in, out] in the stack. Its outputs are those from `first` on, `last`
    excluded."""

    name: str
    expert: int
    transposed: bool
    first: int = 0
    last: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def shape(self, of: ShapeOf) -> Shape:
        _, *axes = of(self.name)
        outputs, inputs = reversed(axes) if self.transposed else axes
        return len(range(outputs)[self.first : self.last]), inputs

    def read(self, read: Read, index: tuple[slice, ...]) -> Array:
        """Read the wanted part alone; slices are not negative."""
        rows, columns = (*index, slice(None), slice(None))[:2]
        stop = self.last if rows.stop is None else self.first + rows.stop
        outputs = slice(self.first + (rows.start or 0), stop)
        axes = (columns, outputs) if self.transposed else (outputs, columns)
        found: Array = read(self.name, (slice(self.expert, self.expert + 1), *axes))[0]
        return found.T if self.transposed else found


def as_neighbours(halves: Array) -> Array:
    """[heads, numbers, width]"""
    heads, numbers, width = halves.shape
    return halves.reshape(heads, 2, numbers // 2, width).swapaxes(1, 2).reshape(halves.shape)


def assembled_of(names: Collection[str], config: DecoderConfig, shape: ShapeOf) -> Iterator[tuple[str, Assembled]]:
    """The hub's names of tensors that are made of others. Raises HandlerLoadError for experts that could lie in two
    ways."""
    for layer in range(config.layers):
        for name, one in _of_layer(names, f"model.layers.{layer}.", config, shape):
            if all(own in names for own in one.names):
                yield name, one


def _of_layer(
    names: Collection[str], place: str, config: DecoderConfig, shape: ShapeOf
) -> Iterator[tuple[str, Assembled]]:
    if config.latent is not None:
        yield from _of_attention(place, config.latent, config.heads)
    if config.experts is not None:
        yield from _of_experts(names, place, config.experts, config.hidden_size, shape)


def _of_attention(place: str, latent: LatentConfig, heads: int) -> Iterator[tuple[str, Assembled]]:
    for own, parts, sizes, count, turning in (
        ("q_b_proj", ("l2q_nope_proj", "l2q_pe_proj"), (latent.still, latent.turning), heads, (False, True)),
        ("kv_a_proj_with_mqa", ("kv2l_latent_kv", "kv2l_k_pe"), (latent.rank, latent.turning), 1, (False, True)),
        ("kv_b_proj", ("lkv2kv_k_nope", "lkv2kv_v"), (latent.still, latent.value), heads, (False, False)),
    ):
        found = tuple(f"{place}attention.{part}.weight" for part in parts)
        yield f"{place}self_attn.{own}.weight", DividedHeads(found, sizes, count, turning)


def _of_experts(
    names: Collection[str], place: str, experts: ExpertsConfig, hidden: int, shape: ShapeOf
) -> Iterator[tuple[str, Assembled]]:
    stack, inner = f"{place}feed_forward.routed_experts.ffn.", experts.inner
    for name in sorted(name for name in names if name.startswith(stack)):
        if len(found := shape(name)) != 3 or found[0] != experts.count:
            raise HandlerLoadError(f"{name} has the shape {found}; config.json makes it {experts.count} experts")
    for expert in range(experts.count):
        own = f"{place}mlp.experts.{expert}."
        if f"{stack}w1" in names:  # gate and up side by side, [in, out] as grouped products want them
            yield f"{own}gate_proj.weight", OfStack(f"{stack}w1", expert, True, 0, inner)
            yield f"{own}up_proj.weight", OfStack(f"{stack}w1", expert, True, inner)
            yield f"{own}down_proj.weight", OfStack(f"{stack}w2", expert, True)
        elif f"{stack}w1.weight" in names:
            transposed = _transposed(f"{stack}w1.weight", shape, inner, hidden)
            for theirs, ours in (("w1", "gate_proj"), ("w3", "up_proj"), ("w2", "down_proj")):
                yield f"{own}{ours}.weight", OfStack(f"{stack}{theirs}.weight", expert, transposed)


def _transposed(name: str, shape: ShapeOf, inner: int, hidden: int) -> bool:
    """Whether a stack of [inner, hidden] lies as [hidden, inner]: converters write both under one name."""
    if inner == hidden:
        raise HandlerLoadError(
            f"{name} is as wide as it is high ({hidden}), so that its file does not say which is the input; take the "
            "checkpoint of the model's hub"
        )
    return shape(name)[1:] == (hidden, inner)
