"""This rank's part of a model on an NPU, run in flat steps: prompts, chunks of prompts and single tokens mix in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
from mindspore import Tensor

from msx_llm.adapters.adapter import Adapter
from msx_llm.adapters.device import DeviceAdapters
from msx_llm.kernels.ascend.blocks import BlockTables, FlatArrays, block_size_of, nowhere
from msx_llm.kernels.ascend.capture import DecodeCapture
from msx_llm.kernels.ascend.choosing import TokenChooser
from msx_llm.kernels.ascend.following import ChosenTokens
from msx_llm.kernels.ascend.graphs import FlatGraphs
from msx_llm.kernels.ascend.inputs import DECODE, MIXED, PREFILL
from msx_llm.limits import EngineLimits
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import Decoder
from msx_llm.models.kernels import Array
from msx_llm.models.parts import DecoderParts
from msx_llm.models.text_angles import TextAngles
from msx_llm.sampling.choice import TokenChoice
from msx_llm.stage import Choose, Finish, StageMessages
from msx_llm.step import UNREAD, TokenChunk
from msx_sdk.errors import HandlerLoadError

NO_PICKS = NO_REACH = np.zeros(1, np.int32)
PAIR = np.zeros(2, np.int32)
"""The tokens of a text that keeps nothing."""
CAPTURE_RUNS = 2
"""One that gets its memory, and one that is recorded."""


class FlatStep(NamedTuple):
    """The host's part of a step: T tokens, an array or a tensor; the slots that have them; and the rows of logits. The
    last `fillers` of slots and rows do not belong to any text: their slots are None."""

    kind: int
    tokens: Any
    arrays: FlatArrays
    slots: Sequence[int | None]
    rows: Array
    fillers: int = 0
    captured: bool = False


class FlatRunner:
    """A `StepRunner` that can run `Mixed` steps. All ranks make the same calls in the same order; rank 0 gets the
    logits, the others arrays without rows."""

    def __init__(
        self,
        decoder: Decoder,
        config: DecoderConfig,
        limits: EngineLimits,
        parts: DecoderParts,
        chooses: bool = True,
        blocks: int | None = None,
    ) -> None:
        """Takes a decoder with its weights. `chooses`: see `ChoosingRunner`. `blocks`: those of a runner that is only
        for trials; None: as many as `limits` need. Raises HandlerLoadError."""
        check_capture(config, limits)
        self.overlaps = parts.parallel.target == "Ascend"
        self.chooses, self.follows = chooses, chooses and parts.parallel.stages == 1
        self.limits, self._config, self._dtype = limits, config, parts.kernels.dtype
        self.vocab_size, self.slots, self.context = config.vocab_size, limits.slots, limits.context
        self.prefill_size, self._text_angles = limits.batch_prefill, TextAngles(config, self.slots)
        heads = parts.heads(config)
        size = block_size_of(config)
        self._tables = BlockTables(self.slots, self.context, limits.batch_total, size, config.sinks)
        self._kinds = StepKinds(config)
        self.block, self.blocks = self._tables.size, self._tables.blocks
        decoder.body.step.prepare(max(self.context, self.prefill_size + self.slots + 1))
        eager = parts.parallel.target != "Ascend"
        self._graphs = FlatGraphs(decoder, config, (blocks or self.blocks, self.block), eager)
        self._chosen = ChosenTokens(TokenChooser(self.vocab_size, eager), parts.parallel, self.slots, eager)
        self._capture = DecodeCapture(limits.capture_buckets)
        self._adapters = DeviceAdapters(decoder.body, config, self.slots) if parts.adapters is not None else None
        self._messages, self._pins = StageMessages(config, parts), parts.parallel.target == "Ascend"
        self._no_angles = Tensor(np.zeros((2, 1, heads.size), np.float32)).astype(self._dtype)

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        """Put the slot's positions in these blocks from now on; block 0 does not belong to any text."""
        self._tables.assign(slot, blocks)

    def stretch(self, slot: int, length: int) -> None:
        """Say that the slot holds a text, from now on, whose prompt has `length` tokens. Only if `config.stretches`."""
        self._text_angles.stretch(slot, length)

    def adapt(self, slot: int, place: int, adapter: Adapter | None) -> None:
        """See `Adapt`. Only if the decoder has room for adapters."""
        assert self._adapters is not None
        self._adapters.adapt(slot, place, adapter)

    def recount(self, slot: int, ids: Sequence[int], counts: Sequence[int]) -> None:
        """See `Recount`."""
        self._chosen.recount(slot, ids, counts)

    def prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Array:
        return self.start_prefill(slot, start, tokens, all_logits)()

    def decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Array:
        return self.start_decode(slots, tokens, positions)()

    def mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Array:
        """-> logits float32 [chunks, vocab], of the last token of each; with `choices` ids int32 [chunks]."""
        return self.start_mixed(chunks, choices)()

    def start_prefill(self, slot: int, start: int, tokens: Sequence[int], all_logits: bool = False) -> Finish:
        chunk = TokenChunk(slot, start, tuple(tokens))
        if all_logits:
            return self._start([chunk], np.arange(len(tokens)))
        finish = self.start_mixed([chunk])
        return lambda: finish().reshape(-1)

    def start_decode(self, slots: Sequence[int], tokens: Sequence[int], positions: Sequence[int]) -> Finish:
        texts = zip(slots, positions, tokens, strict=True)
        return self.start_mixed([TokenChunk(slot, position, (token,)) for slot, position, token in texts])

    def start_mixed(self, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice] = ()) -> Finish:
        choose = partial(self._chosen.choose, chunks=chunks, choices=choices) if choices else None
        return self._start(chunks, np.cumsum([len(chunk.tokens) for chunk in chunks]) - 1, choose)

    def warm_up(self, report: Callable[[str], None]) -> None:
        """Compiles the three graphs, and those that choose tokens if it `chooses`, by steps that keep nothing; then
        captures decoding steps, the largest first, in whose memory the others fit."""
        if self.chooses:
            self.recount(0, (), ())
        sampled, last = TokenChoice(temperature=1.0, frequency=1.0), UNREAD if self.follows else 0
        runs = {"prefill": ((0, 0), 0, []), "mixed": ((0, 0), 1, [TokenChoice()]), "decode": ((last,), 1, [sampled])}
        for number, (name, (tokens, start, choices)) in enumerate(runs.items(), 1):
            report(f"{name} ({number} of {len(runs)})")
            chunks = [TokenChunk(0, start, tokens)]
            self._try(self._kinds.of(chunks), chunks, np.array([len(tokens) - 1]), choices)
        for size in reversed(self._capture.sizes):
            report(f"decode of {size} texts, which is captured")
            step = self._filled(size, [TokenChunk(0, 1, (0,))], np.zeros(1, np.int32))
            for _ in range(CAPTURE_RUNS):
                self._run(step._replace(arrays=nowhere(step.arrays)))()

    def try_largest(self) -> None:
        """Runs the largest steps that there may be, which keep nothing: as many tokens of a prompt and other texts as
        one takes, at the end of a whole context, and a prompt whose logits are all wanted."""
        tokens, last = min(self.prefill_size, self.context), self.context - 1
        prompt = TokenChunk(0, self.context - tokens, (0,) * tokens)
        others = [TokenChunk(slot, last, (0,)) for slot in range(1, self.slots)]
        choices = [TokenChoice(temperature=1.0, frequency=1.0)] * self.slots
        self._try(MIXED, [prompt, *others], np.arange(tokens - 1, tokens - 1 + self.slots), choices)
        self._try(MIXED, [prompt], np.arange(tokens), ())

    def _try(self, kind: int, chunks: Sequence[TokenChunk], rows: Array, choices: Sequence[TokenChoice]) -> None:
        step = self._step(kind, chunks, rows)
        choose = partial(self._chosen.choose, chunks=chunks, choices=choices)
        self._run(step._replace(arrays=nowhere(step.arrays)), choose if self.chooses and choices else None)()

    def _start(self, chunks: Sequence[TokenChunk], rows: Array, choose: Choose | None = None) -> Finish:
        self._check(chunks)
        kind = self._kinds.of(chunks)
        if size := self._capture.size_of(kind, len(chunks)):
            tokens = np.array([chunk.tokens[0] for chunk in chunks], np.int32)
            return self._run(self._filled(size, chunks, tokens), choose)
        return self._run(self._step(kind, chunks, rows), choose)

    def _step(self, kind: int, chunks: Sequence[TokenChunk], rows: Array) -> FlatStep:
        slots, owners = [chunk.slot for chunk in chunks], list[int | None]()
        tokens = np.array([token for chunk in chunks for token in chunk.tokens], np.int32)
        counts = [len(chunk.tokens) for chunk in chunks]
        arrays = self._tables.places(slots, [chunk.start for chunk in chunks], counts)
        if kind == MIXED and (max(counts) == 1 or not any(chunk.start for chunk in chunks)):
            arrays, tokens, owners = self._tables.paired(arrays), np.append(tokens, PAIR), [None]
        return FlatStep(kind, self._chosen.follow(tokens, chunks), arrays, [*slots, *owners], rows)

    def _filled(self, size: int, chunks: Sequence[TokenChunk], tokens: Array) -> FlatStep:
        """A decoding step, filled up to `size` texts."""
        slots, fillers = [chunk.slot for chunk in chunks], size - len(chunks)
        arrays = self._tables.filled(slots, [chunk.start for chunk in chunks], size)
        following = self._chosen.follow(np.append(tokens, np.zeros(fillers, np.int32)), chunks)
        return FlatStep(DECODE, following, arrays, [*slots, *[None] * fillers], np.arange(size), fillers, True)

    def _run(self, step: FlatStep, choose: Choose | None = None) -> Finish:
        arrays = step.arrays
        reach = self._tables.reach(arrays.tables.shape[1]) if step.kind == MIXED else NO_REACH
        picks = NO_PICKS if self._adapters is None else self._adapters.picks(step.slots, arrays.q_lengths)
        positions, *others = (host_tensor(array, self._pins) for array in (*arrays, reach, step.rows, picks))
        angles, wanted = self._angles(step.slots, arrays), len(step.rows) - step.fillers

        def compute(x: Any) -> Any:
            self._capture.switch(step.captured)
            result = self._graphs(step.kind, x, positions, angles, *others)
            return result[:wanted] if step.fillers and self._messages.parallel.last_stage else result

        return self._messages.run(step.tokens, compute, wanted, choose)

    def _angles(self, slots: Sequence[int | None], arrays: FlatArrays) -> Any:
        """cos and sin of each token [2, T, D]."""
        if not self._config.stretches:
            return self._no_angles
        rows = self._text_angles.rows(slots, arrays.q_lengths, arrays.positions)
        return Tensor(np.stack(rows)).astype(self._dtype)

    def _check(self, chunks: Sequence[TokenChunk]) -> None:
        count = sum(len(chunk.tokens) for chunk in chunks)
        most = self.prefill_size + self.slots
        if not all(chunk.tokens for chunk in chunks) or not 1 <= count <= most:
            raise ValueError(f"{count} tokens of a step: there must be 1 to {most}, and 1 of each text")
        if len(chunks) > self.slots:
            raise ValueError(f"{len(chunks)} slots: there must be 1 to {self.slots}")
        last = max(chunk.start + len(chunk.tokens) for chunk in chunks)
        if last > self.context:
            raise ValueError(f"position {last - 1}: the context has {self.context} positions")


class StepKinds:
    """Which kind of step some chunks are. Only mixed ones have masks that hide what is behind a window, or the rest of
    the block in which sinks are, angles that depend on the text, and layers that read the blocks of others."""

    def __init__(self, config: DecoderConfig) -> None:
        windows = [window for window in config.windows if window is not None]
        blocks_alone = config.sinks or any(shape.source is not None for shape in config.shapes)
        self._unmasked = 0 if blocks_alone else min(windows, default=config.context)
        self._begins = MIXED if config.stretches else PREFILL

    def of(self, chunks: Sequence[TokenChunk]) -> int:
        if any(chunk.start + len(chunk.tokens) > self._unmasked for chunk in chunks):
            return MIXED
        if not any(chunk.start for chunk in chunks):
            return self._begins
        return DECODE if all(len(chunk.tokens) == 1 for chunk in chunks) else MIXED


def check_capture(config: DecoderConfig, limits: EngineLimits) -> None:
    """Raises HandlerLoadError where no step could be captured."""
    if config.sinks and limits.capture_buckets:
        raise HandlerLoadError(
            f"captureBuckets: config.json, model_type: all steps of {config.model_type} have masks, and only steps "
            "without are captured; leave the key out"
        )


def host_tensor(array: Array, pins: bool) -> Any:
    """An int32 tensor with the data on the host, where the kernels read lengths. In pinned memory it is copied to the
    device while the host goes on (vllm-mindspore 0.5.1, models/utils.py)."""
    tensor = Tensor(np.ascontiguousarray(array, np.int32), ms.int32)
    return tensor.pin_memory() if pins else tensor
