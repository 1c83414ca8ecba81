"""One rank's decoder, run in graphs, and its messages to the stages before and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from msx_backend.llm.cache.interface import Array
from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.decoder import Decoder, DecoderParts
from msx_sdk.mindspore import collectives
from msx_sdk.mindspore.layers import counted

Finish = Callable[[], Array]
"""Waits for the logits; on ranks other than 0 the result has no rows."""


class DecoderStage:
    def __init__(self, decoder: Decoder, config: DecoderConfig, parts: DecoderParts) -> None:
        parallel = parts.parallel
        self.parallel, self.hidden, self.vocab, self.dtype = (
            parallel,
            config.hidden_size,
            config.vocab_size,
            parts.dtype,
        )
        self.eager = parallel.graphs_hang
        self.body = self._graph(decoder.body)
        if parallel.last_stage:
            self.head, self.whole = self._graph(decoder.head), self._graph(decoder)

    def run(self, tokens: Array, *inputs: Any, rows: Any = None) -> Finish:
        """tokens [N] int32 -> logits [N, vocab], or of `rows` only. `DecoderBody` says what the inputs are.

        None of them is a tuple of tensors: graphs take those for constants, and would be compiled anew each time.
        """
        x = self._input(tokens)
        if not self.parallel.last_stage:
            self._send(self.body(x, *inputs), self.parallel.stage + 1)
            return self._reply(len(tokens) if rows is None else len(rows))
        if rows is None:
            logits = self.whole(x, *inputs)
        else:
            logits = self.head(self.body(x, *inputs), rows)
        return self._answer(logits)

    def _input(self, tokens: Array) -> Any:
        if self.parallel.first_stage:
            return Tensor(tokens)
        source = self.parallel.peer(self.parallel.stage - 1)
        return collectives.recv((len(tokens), self.hidden), self.dtype, source, self.parallel.pp_group)

    def _reply(self, rows: int) -> Finish:
        """The last stage's result for what this stage has sent."""
        if self.parallel.rank != 0:
            return self._nothing
        last, group = self.parallel.peer(self.parallel.stages - 1), self.parallel.pp_group
        return lambda: _array(collectives.recv((rows, self.vocab), ms.float32, last, group))

    def _answer(self, logits: Any) -> Finish:
        if self.parallel.rank == 0:
            array = _array(logits)
            return lambda: array
        if self.parallel.stages > 1 and self.parallel.tp_rank == 0:
            self._send(logits, 0)
        return self._nothing

    def _send(self, x: Any, stage: int) -> None:
        collectives.send(x, self.parallel.peer(stage), self.parallel.pp_group)

    def _nothing(self) -> Array:
        return np.empty((0, self.vocab), np.float32)

    def _graph(self, cell: Any) -> Callable[..., Any]:
        if self.eager:
            call: Callable[..., Any] = cell
            return call
        return counted(ms.jit(cell.construct), cell)


def _array(tensor: Any) -> Array:
    array: Array = tensor.asnumpy()
    return array
