"""This rank's part of a model, run in steps: shapes are taken from a few buckets, whose graphs `warm_up` compiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from mindspore import Tensor

from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.device import DeviceAdapters
from msx_llm.kernels.cpu.delta_state import SlotDeltaState
from msx_llm.kernels.cpu.extent import extent
from msx_llm.kernels.cpu.layer_graphs import LayerGraphs
from msx_llm.kernels.cpu.pages import trim
from msx_llm.kernels.cpu.recording import records
from msx_llm.kernels.cpu.shapes import StepShape, StepShapes
from msx_llm.kernels.cpu.sleeping import SleepingMemory
from msx_llm.kernels.cpu.slots import SlotAttention, SlotLayout
from msx_llm.kernels.cpu.states import StateLayout
from msx_llm.kernels.cpu.whole_graphs import WholeGraphs
from msx_llm.limits import EngineLimits
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import Decoder
from msx_llm.models.kernels import Array, distinct
from msx_llm.models.parts import DecoderParts
from msx_llm.models.text_angles import TextAngles
from msx_llm.stage import Finish, StageMessages
from msx_llm.step import TokenChunk

Slots = Sequence[int | None]


class DecoderGraphs(Protocol):
    """This rank's part of the decoder: x are ids [T], or the states of the stage before; -> logits of some rows, or
    without `rows` of all, or on an earlier stage states. No input is a tuple of tensors: graphs take those for
    constants, and would be compiled anew each time."""

    def __call__(self, x: Any, inputs: Sequence[Any], rows: Any = None) -> Any: ...


class SlotRunner:
    """All ranks make the same calls in the same order; rank 0 gets the logits, the others arrays without rows.

    `start_prefill` and `start_decode` return before the last stage of a pipeline has answered; the function that they
    return waits for the logits. Several steps may be started; they are finished in the order of their starts.
    """

    overlaps = False  # MindSpore's CPU backend computes where a graph is called

    def __init__(
        self,
        decoder: Decoder,
        config: DecoderConfig,
        limits: EngineLimits,
        parts: DecoderParts,
        load: Callable[[], None],
    ) -> None:
        """Takes a decoder with its weights, which `load` reads. Raises HandlerLoadError."""
        self.limits, self._config, self._dtype = limits, config, parts.kernels.dtype
        self.vocab_size, self.slots, self.context = config.vocab_size, limits.slots, limits.context
        layouts, _ = distinct(kind.heads.keys for kind in decoder.body.kinds)
        self._layouts = [SlotLayout(self.slots, self.context, keys) for keys in layouts]
        self.prefill_size = limits.prefill_buckets[-1]
        contexts = [extent(size) for size in limits.context_buckets]
        groups = config.delta is None and parts.parallel.stages == 1
        self._shapes = StepShapes(limits.slot_buckets, contexts, limits.prefill_buckets, extent, groups)
        self._angles = TextAngles(config, self.slots)
        decoder.body.step.prepare(extent(self.context))
        self._states = None if config.delta is None else StateLayout(config.delta, limits.slot_buckets)
        caches = [layer.cache for layer in decoder.body.layers]
        self._nets = [it for it in caches if isinstance(it, SlotDeltaState)]
        self._keys = [it for it in caches if not isinstance(it, SlotDeltaState)]
        for number, cache in enumerate(caches):
            layout = self._states if isinstance(cache, SlotDeltaState) else self._layout_of(cache)
            cache.prepare(layout, f"layers.{number}")
        for cache in self._keys:
            cache.share(caches)
        self._memory = SleepingMemory(decoder, [it for cache in caches for it in cache.caches], load)
        self._adapters = DeviceAdapters(decoder.body, config, self.slots) if parts.adapters is not None else None
        self._messages = StageMessages(config, parts)
        self._graphs: DecoderGraphs = (
            LayerGraphs(decoder) if records(config, parts.parallel) else WholeGraphs(decoder, parts.parallel)
        )

    @property
    def keeps_states(self) -> bool:
        return self._states is not None

    @property
    def uncompiled(self) -> int:
        return len(self._shapes.later)

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        """Appends tokens from position `start` on; the slot holds the positions before. -> logits float32 [vocab] of
        the last one, or [tokens, vocab] with `all_logits`"""
        return self.start_prefill(slot, start, tokens, all_logits)()

    def prefills(self, chunks: Sequence[TokenChunk]) -> Array:
        """See `GroupingRunner`."""
        return self.start_prefills(chunks)()

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        """Appends one token to each of several slots -> logits float32 [slots, vocab]"""
        return self.start_decode(slots, tokens, positions)()

    def start_prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Finish:
        shape = self._shapes.prefill(len(tokens), self._checked(start + len(tokens)), all_logits)
        finish = self._prefill([TokenChunk(slot, start, tuple(tokens))], shape)
        return finish if all_logits else lambda: finish().reshape(-1)

    def start_prefills(self, chunks: Sequence[TokenChunk]) -> Finish:
        longest = max(len(chunk.tokens) for chunk in chunks)
        end = self._checked(max(chunk.start + len(chunk.tokens) for chunk in chunks))
        shape = self._shapes.prefills(len(chunks), longest, end)
        if shape is not None:
            return self._prefill(chunks, shape)
        finishes = [self.start_prefill(chunk.slot, chunk.start, chunk.tokens) for chunk in chunks]
        return lambda: np.stack([finish() for finish in finishes])

    def start_decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Finish:
        shape = self._shapes.decode(len(slots), self._checked(max(positions) + 1))
        padding = shape.size - len(slots)
        wanted = np.array([*positions, *[-1] * padding])[:, None]
        return self._decode((*slots, *[None] * padding), _padded(tokens, shape.size), wanted, shape.context, len(slots))

    def stretch(self, slot: int, length: int) -> None:
        """Say that the slot holds a text, from now on, whose prompt has `length` tokens. Only if `config.stretches`."""
        self._angles.stretch(slot, length)

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        """See `Adapt`. Only if the decoder has room for adapters."""
        assert self._adapters is not None
        self._adapters.adapt(slot, place, adapter)

    def copy(self, source: int, target: int, length: int) -> None:
        """See `CopyPositions`."""
        for layout in self._layouts if source != target else ():
            rows = _tensor(layout.rows(source, length)), _tensor(layout.rows(target, length))
            for cache in self._keys:
                if cache.kv == layout.heads:
                    cache.copy(*rows)
        if self._states is not None:
            self._copy_states(*self._states.copied(source, target, length))

    def _layout_of(self, cache: SlotAttention) -> SlotLayout:
        return next(layout for layout in self._layouts if layout.heads == cache.kv)

    def keep_state(self, slot: int) -> None:
        """See `KeepState`. Only if texts have states."""
        assert self._states is not None
        source, target = self._states.kept(slot)
        self._copy_states(np.array([source]), np.array([target]))

    def _copy_states(self, source: Array, target: Array) -> None:
        rows = _tensor(source), _tensor(target)
        for net in self._nets:
            net.copy(*rows)

    def sleep(self, weights: bool) -> None:
        """See `Sleep`."""
        if self._states is not None:
            self._states.forget()
        self._memory.release(weights)

    def wake(self) -> None:
        """See `Wake`. Raises HandlerLoadError."""
        self._memory.restore()
        if self._adapters is not None:
            self._adapters.forget()

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Runs every bucket once, on padding alone; no graph is compiled after that."""
        self._run_all(self._shapes.all, report)

    def warm_up_first(self, report: Callable[[str], None]) -> None:
        """See `LaterCompilingRunner`."""
        self._run_all(self._shapes.leave(), report)

    def compile_next(self) -> str:
        """See `LaterCompilingRunner`."""
        shape = self._shapes.later[0]
        self._run_padding(shape)
        self._shapes.compiled(shape)
        trim()
        return shape.name

    def _run_all(self, shapes: Sequence[StepShape], report: Callable[[str], None]) -> None:
        for number, shape in enumerate(shapes, 1):
            report(f"{shape.name} ({number} of {len(shapes)})")
            self._run_padding(shape)
        trim()

    def _run_padding(self, shape: StepShape) -> None:
        if shape.kind == "decode":
            unused = np.full((shape.size, 1), -1)
            self._decode([None] * shape.size, _padded((), shape.size), unused, shape.context, 0)()
        else:
            self._prefill([], shape)()

    def _prefill(self, chunks: Sequence[TokenChunk], shape: StepShape) -> Finish:
        """Parts of prompts, each padded to the shape's size."""
        tokens, positions = np.zeros((shape.texts, shape.size), np.int32), np.full((shape.texts, shape.size), -1)
        for place, chunk in enumerate(chunks):
            count = len(chunk.tokens)
            tokens[place, :count], positions[place, :count] = chunk.tokens, np.arange(chunk.start, chunk.start + count)
        last = np.maximum((positions >= 0).sum(-1) - 1, 0) + np.arange(shape.texts) * shape.size
        rows, slots = np.arange(tokens.size) if shape.every else last, [chunk.slot for chunk in chunks]
        inputs = self._inputs([*slots, *[None] * (shape.texts - len(slots))], positions, shape.context)
        wanted, count = _tensor(rows), len(chunks[0].tokens) if shape.every and chunks else len(chunks)
        finish = self._messages.run(tokens.ravel(), lambda x: self._graphs(x, inputs, wanted), len(rows))
        return lambda: finish()[:count]

    def _decode(self, slots: Slots, tokens: Array, positions: Array, context: int, count: int) -> Finish:
        inputs = self._inputs(slots, positions, context)
        finish = self._messages.run(tokens, lambda x: self._graphs(x, inputs), len(tokens))
        return lambda: finish()[:count]

    def _checked(self, length: int) -> int:
        if length > self.context:
            raise ValueError(f"position {length - 1}: the context has {self.context} positions")
        return length

    def _inputs(self, slots: Slots, positions: Array, context: int) -> list[Any]:
        arrays = (layout.places(slots, positions, context) for layout in self._layouts)
        places = [_tensor(array) for pair in arrays for array in pair]
        own = np.maximum(positions, 0)
        if self._config.stretches:
            rows = self._angles.rows(slots, own.shape[1], own.ravel())
            places = [*(Tensor(array, self._dtype) for array in rows), *places]
        if self._states is not None:
            places += [_tensor(array) for array in self._states.places(slots, positions)]
        if self._adapters is not None:
            places.append(_tensor(self._adapters.picks(slots, own.shape[1])))
        return [_tensor(own), _tensor(np.arange(context)), *places]


def _padded(tokens: Sequence[int], count: int) -> Array:
    return np.pad(np.array(tokens, np.int32), (0, count - len(tokens)))


def _tensor(array: Array) -> Any:
    return Tensor(array.astype(np.int32))
