"""Changes to a call of an NPU's operator, and the steps in which it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.step import TokenChunk
from tests.llm.flat_models import ROUNDING, TOKENS, emulation, make_flat

ms = pytest.importorskip("mindspore")

Change = Callable[[Any], Any]


def as_type(name: str) -> Change:
    return lambda tensor: tensor.astype(getattr(ms, name))


def plus(number: float) -> Change:
    return lambda value: value + number


def instead(value: Any) -> Change:
    return lambda given: value


def filled(number: float) -> Change:
    return lambda tensor: ms.Tensor(np.full(tensor.shape, number, np.float32)).astype(tensor.dtype)


def of_first(change: Change) -> Change:
    return lambda tensors: [change(tensors[0]), *tensors[1:]]


def heads_apart(tensor: Any) -> Any:
    return tensor.reshape((tensor.shape[0], -1, 16))


def backwards(tensor: Any) -> Any:
    return ms.Tensor(tensor.float().asnumpy()[:, ::-1].copy()).astype(tensor.dtype)


def rolled(tensor: Any) -> Any:
    return ms.Tensor(np.roll(tensor.asnumpy(), 3))


def turned(tensor: Any) -> Any:
    return ms.Tensor(tensor.asnumpy()[::-1].copy())


TEXTS = TOKENS[:17], TOKENS[20:26]


STEPS = [[(0, 0, 10), (1, 0, 5)], [(0, 10, 16), (1, 5, 6)], [(0, 16, 17)]]
"""Two prompts; a chunk beside a single token; a single token."""


class Scenario:
    """The steps on one runner, whose blocks are as new each time: what was written before would hide what is not
    written now. No operator is called while it is made."""

    def __init__(self, model: Path, family: str = "qwen3", dtype: str = "float16") -> None:
        with emulation() as calls:
            self._runner, self._dtype = make_flat(family, model, dtype), dtype
        assert not calls.calls
        graphs = self._runner._graphs
        self._new = [[block.copy() for block in blocks] for blocks in (graphs.keys, graphs.values)]

    def logits(self) -> Any:
        return np.concatenate([*self._steps()])

    def bound(self, wanted: Any) -> float:
        """Bound of the rounding in 16 bits."""
        largest: float = np.abs(wanted).max()
        return ROUNDING[self._dtype] * largest

    def assert_unchanged(self, wanted: Any) -> None:
        """Compare the logits step by step: the first step that differs ends the test, and saves the others."""
        row = 0
        for logits in self._steps():
            own = wanted[row : row + len(logits)]
            np.testing.assert_allclose(logits, own, rtol=0, atol=self.bound(wanted))
            row += len(logits)

    def _steps(self) -> Iterator[Any]:
        """Logits of each step."""
        graphs = self._runner._graphs
        graphs.keys, graphs.values = (ms.mutable([block.copy() for block in blocks]) for blocks in self._new)
        for step in STEPS:
            chunks = [TokenChunk(slot, start, tuple(TEXTS[slot][start:stop])) for slot, start, stop in step]
            yield self._runner.mixed(chunks)
