"""The tensors of a checkpoint in Hugging Face's layout, checked against `config.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from msx_core.mindspore.weights import Weights
from msx_llm.models import float8
from msx_llm.models.arrangement import GATE, NORMS, VALUES, Shape, TensorSource, layer_sources
from msx_llm.models.config import DecoderConfig
from msx_llm.models.layer_shapes import gate_shapes, input_shapes
from msx_llm.models.mindformers_names import hub_names, is_llama
from msx_llm.models.mindformers_parts import Assembled, assembled_of
from msx_llm.models.mxfp4 import packed_shapes
from msx_llm.models.quantised.detect import weights_of
from msx_llm.models.quantised.format import LinearFormat
from msx_llm.models.quantised.matrix import read_matrix
from msx_llm.models.quantised.scheme import ROOT
from msx_llm.models.quantised.stored import WEIGHT, stored_shapes
from msx_llm.models.stacked_experts import stacked_experts
from msx_llm.models.text_part import OTHERS, PREFIXES
from msx_sdk.errors import HandlerLoadError

HEAD = "lm_head.weight"
SCORES = "score.weight"
"""The head of a decoder for sequence classification."""
PACKED = ("experts.gate_up_proj", "experts.down_proj")
FIRST_EXPERT = "mlp.experts.0."
GUESSING = ("mtp.",)
"""How names of layers begin that guess further tokens, where they stand beside the model."""
_DERIVED = ("rotary_emb.inv_freq", "masked_bias", "attn.bias")
"""Buffers in old files that are computed anew."""


class Checkpoint(Weights):
    """A folder's `model.safetensors`, or the files of its `model.safetensors.index.json`, for the model of `config`, by
    Hugging Face's names of tensors or by MindFormers'.

    Raises HandlerLoadError where a tensor is missing, unexpected, or of another shape: it names tensor, file and the
    shape expected. Only headers are read for that; ranks read their parts afterwards. Tensors have the engine's names:
    `layer_shapes`. `passed` are tensors that the caller reads itself, or needs not.
    """

    def __init__(self, folder: Path, config: DecoderConfig, passed: tuple[str, ...] = ()) -> None:
        super().__init__(weights_of(folder))
        self._assembled: dict[str, Assembled] = {}
        self._take_names(config)
        self._sources: dict[str, TensorSource] = {}
        found = (prefix for prefix in ("", *PREFIXES) if f"{prefix}embed_tokens.weight" in self)
        self.prefix = next(found, "model.")
        """The prefix of all names but the head's; empty for models that were saved without a head."""
        self._sources = dict(sources(config, self.prefix))
        self._blocks = config.scaled_blocks
        guesses = config.latent is not None or (config.experts is not None and config.experts.sigmoid)
        self._further: tuple[str, ...] = (f"{self.prefix}layers.{config.layers}.",) if guesses else ()
        """Layers that guess further tokens, and what pictures go through: nothing runs them."""
        self._further += (*passed, *OTHERS, *_unread(config, self.prefix))
        self._further += GUESSING if config.delta is not None else ()
        self._quantised = config.quantised
        stored, further = stored_shapes(dict(shapes(config, self.prefix)), self.prefix, config.quantised)
        further |= {own for one in self._assembled.values() for own in one.names}
        self._check(stored, config.tied, further)

    def _take_names(self, config: DecoderConfig) -> None:
        """The hub's names of tensors that have MindFormers', or are made of several of its own."""
        if is_llama(self._files):
            self._assembled = dict(assembled_of(self._files, config, super().shape))
        elif stacked := dict(stacked_experts(self._files, config, super().shape)):
            self._assembled = {**stacked}
            self._files = {**self._files, **{name: self._files[one.name] for name, one in stacked.items()}}
        taken = {own: self._files[own] for one in self._assembled.values() for own in one.names}
        if named := hub_names(self._files.keys() - taken.keys()):
            files = {name: taken[one.names[0]] for name, one in self._assembled.items()}
            own = {name: self._files[stored] for name, stored in named.items()}
            self._stored, self._files = named, own | files | taken

    def __enter__(self) -> Checkpoint:
        return self

    def __contains__(self, name: str) -> bool:
        return super().__contains__(self._sources[name].name if name in self._sources else name)

    def source(self, name: str) -> TensorSource:
        return self._sources[name]

    @property
    def stored(self) -> StoredTensors:
        return StoredTensors(self)

    def shape(self, name: str) -> Shape:
        return self._sources[name].shape if name in self._sources else self._stored_shape(name)

    def _stored_shape(self, name: str) -> Shape:
        one = self._assembled.get(name)
        return super().shape(name) if one is None else one.shape(super().shape)

    def read(self, name: str, *index: slice) -> Any:
        """Read a tensor; a quantised layer's weight is read as the numbers that its integers stand for."""
        if (form := self._form(name)) is not None:
            rows, columns = (*index, slice(None), slice(None))[:2]
            outputs, inputs = self.shape(name)
            own = slice(*rows.indices(outputs)[:2])
            return read_matrix(self, form, name.removesuffix(WEIGHT), slice(0, inputs), own).numbers.T[:, columns]
        if (source := self._sources.get(name)) is None:
            return self._values(name, index)
        first, *others = index or (slice(None),)
        return source.arranged(self._values(source.name, (source.rows(first), *others)))

    def _form(self, name: str) -> LinearFormat | None:
        if self._quantised is None or not name.endswith(WEIGHT):
            return None
        return self._quantised.of(ROOT + name.removesuffix(WEIGHT).removeprefix(self.prefix))

    def _values(self, name: str, index: tuple[slice, ...]) -> Any:
        if (one := self._assembled.get(name)) is not None:
            return one.read(self._values, index)
        if self._blocks is None or self._slice(name).get_dtype() != float8.DTYPE:
            return super().read(name, *index)
        scales = super().read(name + float8.SCALES)
        return float8.read_float8(self._files[name], name, index, scales, self._blocks)

    def _check(self, wanted: dict[str, Shape], tied: bool, further: set[str]) -> None:
        if missing := sorted(wanted.keys() - self._files.keys()):
            name = missing[0]
            raise HandlerLoadError(
                f"{self._path.name} has no tensor {name}{_more(missing)}; its shape is {wanted[name]}"
            )
        scales = {name + float8.SCALES for name in wanted} if self._blocks else set()
        others = self._files.keys() - wanted.keys() - scales - further
        if odd := sorted(name for name in others if not _ignored(name, tied) and not name.startswith(self._further)):
            file = self._files[odd[0]].name
            raise HandlerLoadError(f"{file}: the model of config.json has no tensor {odd[0]}{_more(odd)}")
        for name, shape in wanted.items():
            if (found := self._stored_shape(name)) != shape:
                file = self._files[name].name
                raise HandlerLoadError(f"{file}: {name} has the shape {found}; config.json makes it {shape}")
            if name not in self._assembled and self._slice(name).get_dtype() == float8.DTYPE:
                self._check_scales(name, shape)

    def _check_scales(self, name: str, shape: Shape) -> None:
        if self._blocks is None or len(shape) != 2:
            raise HandlerLoadError(
                f"{self._files[name].name}: {name} has 8-bit floats; they need quantization_config.weight_block_size "
                "in config.json, and two axes"
            )
        wanted = tuple(-(-size // block) for size, block in zip(shape, self._blocks, strict=True))
        if (found := super().shape(name + float8.SCALES)) != wanted:
            raise HandlerLoadError(
                f"{self._files[name].name}: {name + float8.SCALES} has the shape {found}; config.json makes it {wanted}"
            )


class StoredTensors:
    """A checkpoint's tensors as its files store them, by their names there."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def __contains__(self, name: str) -> bool:
        return name in self._checkpoint.names

    def read(self, name: str, *index: slice) -> Any:
        return Weights.read(self._checkpoint, name, *index)


def shapes(config: DecoderConfig, prefix: str) -> Iterator[tuple[str, Shape]]:
    """The name and shape of every tensor of the files, weights as [out, in]."""
    yield f"{prefix}embed_tokens.weight", (config.vocab_size, config.hidden_size)
    yield from ((f"{prefix}{name}", shape) for name, shape in input_shapes(config))
    for layer in range(config.layers):
        for name, shape in _file_shapes(config, layer):
            yield f"{prefix}layers.{layer}.{name}", shape
    yield f"{prefix}norm.weight", (config.hidden_size,)
    if not config.tied:
        yield _head(prefix), (config.vocab_size, config.hidden_size)


def _head(prefix: str) -> str:
    """The head's name: it stands beside the body, whose prefix may be that of a text part."""
    return prefix.removesuffix("model.") + HEAD if prefix == PREFIXES[0] else HEAD


def _file_shapes(config: DecoderConfig, layer: int) -> Iterator[tuple[str, Shape]]:
    rows, own = dict[str, Shape](), config.of_layer(layer)
    for name, source in layer_sources(own, layer_shapes(config, layer)):
        before = rows.get(source.name, (0,))[0]
        if not (own.values_of_keys and name.startswith(VALUES)):  # whose rows are those of keys
            rows[source.name] = (before + source.shape[0], *source.shape[1:])
    packed = config.experts is not None and config.experts.packed
    for name, shape in rows.items():
        yield from packed_shapes(name, shape) if packed and name.endswith(PACKED) else ((name, shape),)


def sources(config: DecoderConfig, prefix: str) -> Iterator[tuple[str, TensorSource]]:
    """Where the engine's tensors are, if files have them otherwise."""
    if not config.tied:
        yield HEAD, TensorSource(_head(prefix), (config.vocab_size, config.hidden_size))
    norm = f"{prefix}norm.weight"
    yield norm, TensorSource(norm, (config.hidden_size,), offset=config.norm_offset, factor=config.logits_factor)
    for layer in range(config.layers):
        place = f"{prefix}layers.{layer}."
        for name, source in layer_sources(config.of_layer(layer), layer_shapes(config, layer)):
            yield place + name, replace(source, name=place + source.name)


def counted_shapes(config: DecoderConfig, layer: int) -> Iterator[tuple[str, Shape, int]]:
    """The engine's tensors of a layer, and how many of each there are: of experts, which are alike, the first has all.
    Sums over them need not name thousands."""
    experts = 1 if config.experts is None else config.experts.count
    for name, shape in layer_shapes(config, layer, named=1):
        yield name, shape, experts if name.startswith(FIRST_EXPERT) else 1


def layer_shapes(config: DecoderConfig, layer: int, named: int | None = None) -> Iterator[tuple[str, Shape]]:
    """The engine's tensors of a layer; `named`: only the first of its experts."""
    hidden, config = config.hidden_size, config.of_layer(layer)
    if config.delta is not None and config.delta.layers[layer]:
        yield from ((f"linear_attn.{name}", shape) for name, shape in config.delta.shapes(hidden))
    elif config.latent is not None:
        own = config.latent.shapes(hidden, config.heads)
        yield from ((f"self_attn.{name}", shape) for name, shape in own)
    else:
        yield from _attention(config)
    yield from ((f"mlp.{name}", shape) for name, shape in _mlp(config, layer, named))
    yield from gate_shapes(config)
    if config.layer_factors:
        yield "layer_scalar", (1,)
    for name, place in NORMS.items():
        if not name.startswith("self_attn.") and getattr(config.norms, place):
            yield f"{name}.weight", (hidden,)


def _unread(config: DecoderConfig, prefix: str) -> Iterator[str]:
    """Keys and values that some files have of layers that read another one's."""
    for layer, shape in enumerate(config.shapes):
        if shape.source is not None:
            yield from (f"{prefix}layers.{layer}.self_attn.{name}" for name in ("k_proj", "v_proj", "k_norm", "v_norm"))


def _attention(config: DecoderConfig) -> Iterator[tuple[str, Shape]]:
    hidden, head = config.hidden_size, config.head_dim
    q, kv = config.heads * head, config.kv_heads * head
    yield from _linear("self_attn.q_proj", q, hidden, config.qkv_bias)
    if config.source is None:
        yield from _linear("self_attn.k_proj", kv, hidden, config.qkv_bias)
        yield from _linear("self_attn.v_proj", kv, hidden, config.qkv_bias)
    yield from _linear("self_attn.o_proj", hidden, q, config.o_bias)
    if config.gated:
        yield from _linear(GATE, q, hidden, config.qkv_bias)
    if config.sinks:
        yield "self_attn.sinks", (config.heads,)
    if config.qk_norm or config.qk_norm_whole:
        whole = config.qk_norm_whole
        yield "self_attn.q_norm.weight", (q if whole else head,)
        if config.source is None:
            yield "self_attn.k_norm.weight", (kv if whole else head,)


def _mlp(config: DecoderConfig, layer: int, named: int | None) -> Iterator[tuple[str, Shape]]:
    hidden, inner = config.hidden_size, config.intermediate_size
    if config.experts is not None and config.sparse(layer):
        yield from config.experts.shapes(hidden, named)
        if not config.experts.beside:
            return
    yield from _linear("gate_proj", inner, hidden, config.mlp_bias)
    yield from _linear("up_proj", inner, hidden, config.mlp_bias)
    yield from _linear("down_proj", hidden, inner, config.mlp_bias)


def _linear(name: str, outputs: int, inputs: int, bias: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    if bias:
        yield f"{name}.bias", (outputs,)


def _ignored(name: str, tied: bool) -> bool:
    return name.endswith(_DERIVED) or (tied and name.endswith(HEAD))


def _more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
