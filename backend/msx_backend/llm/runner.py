"""This rank's part of a model, run in steps: shapes are taken from a few buckets, whose graphs `warm_up` compiles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from msx_backend.llm.cache.device import make_layout
from msx_backend.llm.cache.interface import Array, Layout
from msx_backend.llm.cache.paged import BLOCK, PagedLayout, check_windows
from msx_backend.llm.limits import EngineLimits
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.decoder import Decoder, DecoderParts
from msx_backend.llm.models.rope import dynamic_rows
from msx_backend.llm.models.weights import Checkpoint, layer_shapes
from msx_backend.llm.stage import DecoderStage, Finish
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore._balance import balance
from msx_sdk.mindspore._loading import parameter_size, without_data
from msx_sdk.mindspore.parallel import Parallel

Slots = Sequence[int | None]
Plan = Callable[[int], EngineLimits]
"""The limits that fit beside weights of this many bytes."""


class ModelRunner:
    """All ranks make the same calls in the same order; rank 0 gets the logits, the others arrays without rows.

    `start_prefill` and `start_decode` return before the last stage of a pipeline has answered; the function that they
    return waits for the logits. Several steps may be started; they are finished in the order of their starts.
    """

    _layout: Layout

    def __init__(self, decoder: Decoder, config: DecoderConfig, limits: EngineLimits, parts: DecoderParts) -> None:
        """Takes a decoder with its weights. Raises HandlerLoadError."""
        target = parts.parallel.target
        self.limits, self._config, self._dtype = limits, config, parts.dtype
        self.vocab_size, self.slots, self.context = config.vocab_size, limits.slots, limits.context
        self._slot_buckets, self._prefill_buckets = limits.slot_buckets, limits.prefill_buckets
        kv_heads = config.kv_heads_of(parts.parallel.tp_size)
        self._layout, make_cache = make_layout(target, self.slots, self.context, kv_heads, parts.dtype)
        self._contexts = tuple(self._layout.extent(size) for size in limits.context_buckets)
        self._lengths = np.zeros(self.slots, int)
        with without_data():
            decoder.body.prepare(self._layout.extent(self.context), make_cache)
        self._caches = [layer.self_attn.cache for layer in decoder.body.layers]
        self._stage = DecoderStage(decoder, config, parts)

    @classmethod
    def load(cls, folder: Path, config: DecoderConfig, plan: Plan, parallel: Parallel) -> ModelRunner:
        """Loads the weights first, because `plan` may ask the device how much memory they leave. Raises
        HandlerLoadError if the model cannot be divided like this, or cannot generate."""
        check_generates(config)
        check_division(config, parallel)
        parts = DecoderParts(parallel, getattr(ms, config.dtype_on(parallel.target)))
        with Checkpoint(folder, config) as checkpoint:
            with without_data():
                decoder = Decoder(config, parts, own_layers(config, parallel))
            decoder.load(checkpoint)
        decoder.set_train(False)
        kind = cls if parallel.target == "CPU" else PagedModelRunner
        return kind(decoder, config, plan(parameter_size(decoder)), parts)

    @property
    def prefill_size(self) -> int:
        """The most tokens of one prefill."""
        return self._prefill_buckets[-1]

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        """Appends tokens from position `start` on; the slot holds the positions before. -> logits float32 [vocab] of
        the last one, or [tokens, vocab] with `all_logits`"""
        return self.start_prefill(slot, start, tokens, all_logits)()

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        """Appends one token to each of several slots -> logits float32 [slots, vocab]"""
        return self.start_decode(slots, tokens, positions)()

    def start_prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Finish:
        count = _bucket(self._prefill_buckets, len(tokens), "tokens of a prefill")
        context = _bucket(self._prefill_contexts(count), self._checked(start + len(tokens)), "positions")
        positions = np.full((1, count), -1)
        positions[0, : len(tokens)] = np.arange(start, start + len(tokens))
        finish = self._prefill(slot, _padded(tokens, count), positions, context, len(tokens), all_logits)
        return finish if all_logits else lambda: finish().reshape(-1)

    def start_decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Finish:
        batch = _bucket(self._slot_buckets, len(slots), "slots")
        context = _bucket(self._contexts, self._checked(max(positions) + 1), "positions")
        padding = batch - len(slots)
        wanted = np.array([*positions, *[-1] * padding])[:, None]
        return self._decode((*slots, *[None] * padding), _padded(tokens, batch), wanted, context, len(slots))

    def stretch(self, slot: int, length: int) -> None:
        """From now on the slot holds a text whose prompt has `length` tokens. Only if `config.stretches`."""
        self._lengths[slot] = length

    def copy(self, source: int, target: int, length: int) -> None:
        """Copies the keys and values of a slot's first `length` positions to another slot."""
        rows = _tensor(self._layout.rows(source, length)), _tensor(self._layout.rows(target, length))
        for cache in self._caches:
            cache.copy(*rows)

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Runs every bucket once, on padding alone; no graph is compiled after that."""
        runs = [*self._decode_runs(), *self._prefill_runs()]
        for number, (name, run) in enumerate(runs, 1):
            report(f"{name} ({number} of {len(runs)})")
            run()

    def _decode_runs(self) -> list[tuple[str, Callable[[], Any]]]:
        def run(batch: int, context: int) -> Callable[[], Any]:
            return lambda: self._decode([None] * batch, _padded((), batch), np.full((batch, 1), -1), context, 0)()

        return [
            (f"decode {batch} × {context}", run(batch, context))
            for batch in self._slot_buckets
            for context in self._contexts
        ]

    def _prefill_runs(self) -> list[tuple[str, Callable[[], Any]]]:
        def run(count: int, context: int, every: bool) -> Callable[[], Any]:
            positions = np.full((1, count), -1)
            return lambda: self._prefill(None, _padded((), count), positions, context, 1, every)()

        return [
            (f"prefill {count} × {context}{', all logits' if every else ''}", run(count, context, every))
            for count in self._prefill_buckets
            for context in self._prefill_contexts(count)
            for every in ((False, True) if context == self._contexts[-1] else (False,))
        ]

    def _prefill_contexts(self, count: int) -> list[int]:
        """The first context that holds a whole bucket, and the last one: further graphs would not repay their
        compilation."""
        fitting = [context for context in self._contexts if context >= count]
        return sorted({*fitting[:1], self._contexts[-1]})

    def _prefill(
        self, slot: int | None, tokens: Array, positions: Array, context: int, count: int, every: bool
    ) -> Finish:
        rows = np.arange(len(tokens)) if every else np.array([count - 1])
        finish = self._stage.run(tokens, *self._inputs([slot], positions, context), rows=_tensor(rows))
        return (lambda: finish()[:count]) if every else finish

    def _decode(self, slots: Slots, tokens: Array, positions: Array, context: int, count: int) -> Finish:
        finish = self._stage.run(tokens, *self._inputs(slots, positions, context))
        return lambda: finish()[:count]

    def _checked(self, length: int) -> int:
        if length > self.context:
            raise ValueError(f"position {length - 1}: the context has {self.context} positions")
        return length

    def _inputs(self, slots: Slots, positions: Array, context: int) -> list[Any]:
        places = [_tensor(array) for array in self._layout.places(slots, positions, context)]
        own = np.maximum(positions, 0)
        if self._config.stretches:
            places = [*self._angles(slots, own), *places]
        return [_tensor(own), _tensor(np.arange(context)), *places]

    def _angles(self, slots: Slots, positions: Array) -> list[Any]:
        """cos and sin of each token: in the prompt by the prompt's length, after it by the length of the text so
        far."""
        prompts = np.array([0 if slot is None else self._lengths[slot] for slot in slots])[:, None]
        rows = dynamic_rows(self._config, positions.ravel(), np.maximum(prompts, positions + 1).ravel())
        return [Tensor(array, self._dtype) for array in rows]


class PagedModelRunner(ModelRunner):
    """A runner for Ascend, where a slot is a table of blocks. Slots have blocks of their own until they are assigned
    others."""

    _layout: PagedLayout

    def __init__(self, decoder: Decoder, config: DecoderConfig, limits: EngineLimits, parts: DecoderParts) -> None:
        """Raises HandlerLoadError, also if texts may be longer than a layer's window."""
        check_windows(config.windows, limits.context)
        super().__init__(decoder, config, limits, parts)
        self.block, self.blocks = BLOCK, self._layout.blocks

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        """From now on, the slot's positions are in these blocks; block 0 does not belong to any text."""
        self._layout.assign(slot, blocks)


def own_layers(config: DecoderConfig, parallel: Parallel) -> range:
    """The layers of this rank's stage; the largest stage is as small as possible. Raises HandlerLoadError."""
    vocabulary = config.vocab_size * config.hidden_size
    sizes = [sum(prod(shape) for _, shape in layer_shapes(config))] * config.layers
    sizes[0], sizes[-1] = sizes[0] + vocabulary, sizes[-1] + vocabulary
    try:
        return balance(sizes, parallel.stages)[parallel.stage]
    except ValueError as error:
        raise HandlerLoadError(f"{error}; parallel: pipelineStages must be less") from None


def check_generates(config: DecoderConfig) -> None:
    if not config.causal:
        raise HandlerLoadError(
            "config.json, is_causal: false: each token of this model sees what follows it, so that it cannot generate; "
            "serve it with --handler embedding"
        )


def check_division(config: DecoderConfig, parallel: Parallel) -> None:
    """With fewer key-value heads than ranks, neighbouring ranks have the same head."""
    ranks = parallel.tp_size
    sizes = {"num_attention_heads": config.heads, "intermediate_size": config.intermediate_size}
    if config.kv_heads > ranks or ranks % config.kv_heads:
        sizes = {"num_key_value_heads": config.kv_heads} | sizes
    for key, size in sizes.items():
        if size % ranks:
            raise HandlerLoadError(
                f"config.json, {key}: {size} cannot be divided evenly over tensorParallel: {ranks} ranks; "
                "choose a divisor"
            )


def _bucket(sizes: Sequence[int], wanted: int, what: str) -> int:
    index = bisect_left(sizes, wanted)
    if index == len(sizes) or wanted < 1:
        raise ValueError(f"{wanted} {what}: there must be 1 to {sizes[-1]}")
    return sizes[index]


def _padded(tokens: Sequence[int], count: int) -> Array:
    return np.pad(np.array(tokens, np.int32), (0, count - len(tokens)))


def _tensor(array: Array) -> Any:
    return Tensor(array.astype(np.int32))
