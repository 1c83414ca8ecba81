"""One rank's messages to the stages of a pipeline before and after it."""

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import Array
from msx_llm.models.parts import DecoderParts
from msx_sdk.mindspore import collectives

Finish = Callable[[], Array]
"""Waits for the logits, or the ids chosen of them; on ranks other than 0 the result has no rows."""
Choose = Callable[[Any], Any]
"""logits [rows, vocab] -> ids int32 [rows], on the device."""


class StageMessages:
    """Runs this rank's part between what comes from the stage before and what goes to the next one."""

    def __init__(self, config: DecoderConfig, parts: DecoderParts) -> None:
        self.parallel, self.hidden, self.vocab = parts.parallel, config.hidden_size, config.vocab_size
        self.dtype = parts.kernels.dtype

    def run(self, tokens: Any, compute: Callable[[Any], Any], rows: int, choose: Choose | None = None) -> Finish:
        """tokens [T] int32, an array or a tensor -> logits float32 [rows, vocab], or with `choose` ids int32 [rows].

        compute: ids [T], or the states [T, hidden] of the stage before -> states, or on the last stage logits
        """
        x = compute(self._input(tokens))
        if self.parallel.last_stage:
            return self._answer(x, choose)
        self._send(x, self.parallel.stage + 1)
        return self._reply((rows, self.vocab), ms.float32) if choose is None else self._reply((rows,), ms.int32)

    def _input(self, tokens: Any) -> Any:
        if self.parallel.first_stage:
            return Tensor(tokens) if isinstance(tokens, np.ndarray) else tokens
        source = self.parallel.peer(self.parallel.stage - 1)
        return collectives.recv((len(tokens), self.hidden), self.dtype, source, self.parallel.pp_group)

    def _reply(self, shape: tuple[int, ...], dtype: Any) -> Finish:
        """The last stage's result for what this stage has sent."""
        if self.parallel.rank != 0:
            return self._nothing
        last, group = self.parallel.peer(self.parallel.stages - 1), self.parallel.pp_group
        return lambda: _array(collectives.recv(shape, dtype, last, group))

    def _answer(self, logits: Any, choose: Choose | None) -> Finish:
        answer = logits if choose is None else choose(logits)
        if self.parallel.tp_rank:
            return self._nothing
        if self.parallel.rank == 0:
            return lambda: _array(answer)
        self._send(answer, 0)
        return self._nothing

    def _send(self, x: Any, stage: int) -> None:
        collectives.send(x, self.parallel.peer(stage), self.parallel.pp_group)

    def _nothing(self) -> Array:
        return np.empty((0, self.vocab), np.float32)


def _array(tensor: Any) -> Array:
    array: Array = tensor.asnumpy()
    return array
