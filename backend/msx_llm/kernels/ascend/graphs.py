"""A rank's decoder as the three graphs of an NPU: for prompts, for mixed steps, and for one token of each text.

The outermost cells name their inputs as MindSpore's attention kernels look them up, in a registry of the process:
`batch_valid_length` and `q_seq_lens`, int32, made from NumPy for each step (MindSpore 2.10,
include/utils/llm_manager.h). All shapes are dynamic, so that each is compiled once. `phase` is what MindSpore takes
decoding steps by: "increment" for all that reads blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
from mindspore import Tensor, mutable, nn, ops

from msx_llm.kernels.ascend.inputs import DECODE, MIXED, PREFILL
from msx_llm.kernels.ascend.sinks import put_sink
from msx_llm.models.config import DecoderConfig
from msx_llm.models.decoder import Decoder
from msx_sdk.mindspore.layers import counted
from msx_sdk.mindspore.parallel import Parallel

Shape = tuple[int, int, int, int]
NOTHING: Shape = (1, 1, 1, 1)
"""Blocks of a layer that keeps nothing of its own."""
PHASES = {PREFILL: "prefill", MIXED: "increment", DECODE: "increment"}


class FlatCell(nn.Cell):  # type: ignore[misc]
    """The decoder for one kind of step: on the last stage logits float32 [R, vocab] of the tokens `rows`, else the
    states [T, hidden]."""

    def __init__(self, decoder: Decoder, kind: int) -> None:
        super().__init__()
        self.body, self.kind, self.last = decoder.body, kind, decoder.parallel.last_stage
        self.adapted = decoder.body.adapted
        if self.last:
            self.head = decoder.head

    def construct(
        self,
        x: Any,
        positions: Any,
        angles: Any,
        slot_mapping: Any,
        block_tables: Any,
        batch_valid_length: Any,
        q_seq_lens: Any,
        reach: Any,
        rows: Any,
        picks: Any,
        key_cache: Any,
        value_cache: Any,
    ) -> Any:
        adapters: Any = (picks,) if self.adapted else ()
        x = self.body(
            x,
            self.kind,
            positions,
            angles,
            slot_mapping,
            block_tables,
            batch_valid_length,
            q_seq_lens,
            reach,
            key_cache,
            value_cache,
            *adapters,
        )
        return self.head(x, rows) if self.last else x


class FlatGraphs:
    """The graphs of one rank, and its blocks of keys and values. `eager` runs the cells without graphs."""

    def __init__(self, decoder: Decoder, config: DecoderConfig, blocks: tuple[int, int], eager: bool) -> None:
        """blocks: (number, tokens of each)"""
        self.decoder, self.dtype = decoder, decoder.dtype
        shapes = [_shape(config.of_layer(layer), blocks, decoder.parallel) for layer in decoder.body.own]
        self.keys = self._blocks(shapes)
        if config.sinks:
            for keys in self.keys:
                put_sink(keys, config)
        self.values = self._blocks(shapes if config.latent is None else [NOTHING] * len(shapes))
        self.hidden, self.first = config.hidden_size, decoder.parallel.first_stage
        self._cells = {kind: FlatCell(decoder, kind) for kind in PHASES}
        self._calls = {kind: cell if eager else self.graph(cell) for kind, cell in self._cells.items()}

    def __call__(self, kind: int, *inputs: Any) -> Any:
        """All inputs of a `FlatCell` but the blocks."""
        cell = self._cells[kind]
        cell.phase = PHASES[kind]
        return self._calls[kind](*inputs, self.keys, self.values)

    def _blocks(self, shapes: Sequence[Shape]) -> Any:
        """Made on the device: the cache is most of its memory, and copying it from the host would take minutes."""
        return mutable([ops.zeros(shape, self.dtype) for shape in shapes])

    def graph(self, cell: FlatCell) -> Callable[..., Any]:
        """The cell compiled once for all shapes, at its first call."""
        cell.set_inputs(*self.signature())
        # infer_boost chooses the kernels for inference: without it, PagedAttention has none.
        return counted(ms.jit(function=cell, jit_level="O0", infer_boost="on"), cell)

    def signature(self) -> Sequence[Any]:
        """The inputs of a `FlatCell`, with all shapes open."""
        x = _open(1) if self.first else Tensor(shape=[None, self.hidden], dtype=self.dtype)
        blocks = [mutable([_open(4, self.dtype) for _ in self.keys]) for _ in range(2)]
        return [x, _open(1), _open(3, self.dtype), _open(1), _open(2), *(_open(1) for _ in range(5)), *blocks]


def _shape(config: DecoderConfig, blocks: tuple[int, int], parallel: Parallel) -> Shape:
    """Shape of one layer's keys."""
    if config.source is not None:
        return NOTHING
    return (*blocks, config.kv_heads_of(parallel.tp_size), config.cache_size("Ascend"))


def _open(rank: int, dtype: Any = ms.int32) -> Any:
    return Tensor(shape=[None] * rank, dtype=dtype)
