"""One rank's messages to the stages of a pipeline before and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from msx_backend.llm.models.config import DecoderConfig
from msx_backend.llm.models.decoder import DecoderParts
from msx_backend.llm.models.kernels import Array
from msx_sdk.mindspore import collectives

Finish = Callable[[], Array]
"""Waits for the logits; on ranks other than 0 the result has no rows."""


class StageMessages:
    """Runs this rank's part between what comes from the stage before and what goes to the next one."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts) -> None:
        self.parallel, self.hidden, self.vocab = parts.parallel, config.hidden_size, config.vocab_size
        self.dtype = parts.kernels.dtype

    def run(self, tokens: Array, compute: Callable[[Any], Any], rows: int) -> Finish:
        """tokens [T] int32 -> logits float32 [rows, vocab].

        compute: ids [T], or the states [T, hidden] of the stage before -> states, or on the last stage logits
        """
        x = compute(self._input(tokens))
        if self.parallel.last_stage:
            return self._answer(x)
        self._send(x, self.parallel.stage + 1)
        return self._reply(rows)

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


def _array(tensor: Any) -> Array:
    array: Array = tensor.asnumpy()
    return array
