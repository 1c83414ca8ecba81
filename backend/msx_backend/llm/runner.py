"""This rank's part of a model, run in steps: shapes come from a few buckets, whose graphs `warm_up` compiles."""

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
from msx_backend.llm.limits import Limits
from msx_backend.llm.models.config import ModelConfig
from msx_backend.llm.models.decoder import Decoder, Parts
from msx_backend.llm.models.weights import Checkpoint, layer_shapes
from msx_backend.llm.stage import Finish, Stage
from msx_sdk.errors import HandlerLoadError
from msx_sdk.mindspore.balance import balance
from msx_sdk.mindspore.loading import without_data
from msx_sdk.mindspore.parallel import Parallel

Slots = Sequence[int | None]


class ModelRunner:
    """All ranks make the same calls in the same order; rank 0 gets the logits, the others arrays without rows.

    `start_prefill` and `start_decode` return before the last stage of a pipeline has answered: what they return waits
    for the logits. Several may have started; they are finished in the order of their starts.
    """

    _layout: Layout

    def __init__(self, config: ModelConfig, limits: Limits, parallel: Parallel, checkpoint: Checkpoint) -> None:
        """Raises HandlerLoadError where the model cannot be divided so, or a file is no safetensors file."""
        check_division(config, parallel)
        self.vocab_size, self.slots, self.context = config.vocab_size, limits.slots, limits.context
        self._slot_buckets, self._prefill_buckets = limits.slot_buckets, limits.prefill_buckets
        dtype, kv_heads = getattr(ms, config.dtype_on(parallel.target)), config.kv_heads // parallel.tp_size
        self._layout, make_cache = make_layout(parallel.target, self.slots, self.context, kv_heads, dtype)
        self._contexts = tuple(self._layout.extent(size) for size in limits.context_buckets)
        parts = Parts(parallel, make_cache, dtype)
        with without_data():
            decoder = Decoder(config, parts, own_layers(config, parallel), self._layout.extent(self.context))
        decoder.load(checkpoint)
        decoder.set_train(False)
        self._caches = [layer.self_attn.cache for layer in decoder.body.layers]
        self._stage = Stage(decoder, config, parts)

    @classmethod
    def load(cls, folder: Path, config: ModelConfig, limits: Limits, parallel: Parallel) -> ModelRunner:
        with Checkpoint(folder, config) as checkpoint:
            kind = cls if parallel.target == "CPU" else PagedModelRunner
            return kind(config, limits, parallel, checkpoint)

    @property
    def prefill_size(self) -> int:
        """Tokens that one prefill takes at most."""
        return self._prefill_buckets[-1]

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        """Append tokens at the positions from `start` on, those before which the slot holds already.

        -> logits float32 [vocab] of the last one, or [tokens, vocab] with `all_logits`
        """
        return self.start_prefill(slot, start, tokens, all_logits)()

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        """One token each, in slots that all differ -> logits float32 [slots, vocab]"""
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

    def copy(self, source: int, target: int, length: int) -> None:
        """The keys and values of a slot's first `length` positions to another slot."""
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
        """The first that holds a whole bucket, and the last: more graphs would not pay for their compilation."""
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
        places = self._layout.places(slots, positions, context)
        return [_tensor(array) for array in (np.maximum(positions, 0), np.arange(context), *places)]


class PagedModelRunner(ModelRunner):
    """On Ascend, where a slot is a table of blocks. Slots have blocks of their own until they are assigned others."""

    _layout: PagedLayout

    def __init__(self, config: ModelConfig, limits: Limits, parallel: Parallel, checkpoint: Checkpoint) -> None:
        """Raises HandlerLoadError, also where texts may be longer than a layer's window."""
        check_windows(config, limits.context)
        super().__init__(config, limits, parallel, checkpoint)
        self.block, self.blocks = BLOCK, self._layout.blocks

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        """From now on, the slot's positions live in these blocks; block 0 is no text's."""
        self._layout.assign(slot, blocks)


def own_layers(config: ModelConfig, parallel: Parallel) -> range:
    """Of this rank's stage, so that the heaviest one holds as little as can be. Raises HandlerLoadError."""
    vocabulary = config.vocab_size * config.hidden_size
    sizes = [sum(prod(shape) for _, shape in layer_shapes(config))] * config.layers
    sizes[0], sizes[-1] = sizes[0] + vocabulary, sizes[-1] + vocabulary
    try:
        return balance(sizes, parallel.stages)[parallel.stage]
    except ValueError as error:
        raise HandlerLoadError(f"{error}; parallel: pipelineStages must be less") from None


def check_division(config: ModelConfig, parallel: Parallel) -> None:
    sizes = {"num_key_value_heads": config.kv_heads, "intermediate_size": config.intermediate_size}
    for key, size in sizes.items():
        if size % parallel.tp_size:
            raise HandlerLoadError(
                f"config.json, {key}: {size} cannot be divided evenly over tensorParallel: {parallel.tp_size} ranks; "
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
