"""Changes to a call of an NPU's operator, and the steps in which it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_llm.step import TokenChunk
from tests.llm.flat_models import TOKENS, make_flat

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


def scenario(model: Path, family: str = "qwen3", dtype: str = "float16") -> Any:
    """Two prompts; a chunk beside a single token; a single token."""
    runner = make_flat(family, model, dtype)
    steps = [[(0, 0, 10), (1, 0, 5)], [(0, 10, 16), (1, 5, 6)], [(0, 16, 17)]]
    chunks = [[TokenChunk(slot, start, tuple(TEXTS[slot][start:stop])) for slot, start, stop in step] for step in steps]
    return np.concatenate([runner.mixed(step) for step in chunks])
