"""Chooses the next tokens where the logits are, so that ids alone go to the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msx_backend.llm.sampling.choice import TokenChoice
from msx_sdk.mindspore.layers import counted

COLDEST = 1e-30
"""What the host divides by at least, too."""
NO_TOKEN = -1
"""Where logits are not finite."""


class LikeliestTokens(nn.Cell):  # type: ignore[misc]
    """logits float32 [R, vocab] -> ids int32 [R]; among equal ones the first."""

    def construct(self, logits: Any) -> Any:
        ids = ops.argmax(logits, -1).astype(ms.int32)
        finite = ops.isfinite(ops.amax(logits, -1))
        broken = ops.isnan(logits).any(-1)
        return ops.where(ops.logical_and(finite, ops.logical_not(broken)), ids, ops.full_like(ids, NO_TOKEN))


class DrawnTokens(nn.Cell):  # type: ignore[misc]
    """By the host's rules (sampling/filters.py, draw.py), in float32: top-k first, then of what it leaves the fewest of
    the likeliest with the share top-p, then min-p; ties of the last one stay. The token is the one whose interval has
    the uniform number, when the weights are laid side by side in the order of their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.likeliest = LikeliestTokens()

    def construct(self, logits: Any, numbers: Any, top_k: Any) -> Any:
        """logits float32 [R, vocab]; numbers float32 [4, R]: temperature (0 takes the likeliest), top_p, min_p, uniform
        in [0, 1); top_k int32 [R], 1 to vocab -> ids int32 [R]"""
        columns = ops.expand_dims(numbers, -1)
        weights = ops.exp((logits - ops.amax(logits, -1, True)) / ops.maximum(columns[0], COLDEST))
        floor = ops.maximum(self.floor(weights, columns[1], ops.expand_dims(top_k, -1)), columns[2])
        ends = ops.cumsum(weights * (weights >= floor).astype(ms.float32), -1)
        whole = ends[:, -1:]
        drawn = ops.minimum(self.count(ends <= columns[3] * whole), self.count(ends < whole))
        likeliest = self.likeliest(logits)
        return ops.where(ops.logical_and(numbers[0] > 0, likeliest >= 0), drawn[:, 0], likeliest)

    def floor(self, weights: Any, top_p: Any, top_k: Any) -> Any:
        """The weight of the last token that stays [R, 1]."""
        ordered = ops.sort(weights, -1, True)[0]
        kth = ops.gather_elements(ordered, 1, top_k - 1)
        ends = ops.cumsum(ordered * (ordered >= kth).astype(ms.float32), -1)
        place = ops.minimum(self.count(ends < top_p * ends[:, -1:]), ordered.shape[1] - 1)
        return ops.where(top_p < 1, ops.maximum(ops.gather_elements(ordered, 1, place), kth), kth)

    def count(self, found: Any) -> Any:
        return found.astype(ms.int32).sum(-1, keepdims=True).astype(ms.int32)  # a sum of int32 is int64


class TokenChooser:
    """Each way is compiled once for all shapes, as a graph behind that of the step: what is drawn has to be sorted,
    which steps without such texts need not do."""

    def __init__(self, eager: bool) -> None:
        """`eager` runs the cells without graphs."""
        logits, numbers = Tensor(shape=[None, None], dtype=ms.float32), Tensor(shape=[4, None], dtype=ms.float32)
        self._likeliest = _graph(LikeliestTokens(), (logits,), eager)
        self._drawn = _graph(DrawnTokens(), (logits, numbers, Tensor(shape=[None], dtype=ms.int32)), eager)

    def __call__(self, logits: Any, choices: Sequence[TokenChoice]) -> Any:
        """logits float32 [R, vocab] -> ids int32 [R], -1 where the logits are not finite."""
        if not any(choice.temperature for choice in choices):
            return self._likeliest(logits)
        numbers = np.array([(it.temperature, it.top_p, it.min_p, it.uniform) for it in choices], np.float32)
        vocabulary = logits.shape[-1]
        top_k = np.array([min(it.top_k or vocabulary, vocabulary) for it in choices], np.int32)
        return self._drawn(logits, Tensor(np.ascontiguousarray(numbers.T)), Tensor(top_k))


def _graph(cell: Any, inputs: Sequence[Any], eager: bool) -> Callable[..., Any]:
    if eager:
        return counted(cell, cell)
    cell.set_inputs(*inputs)
    return counted(ms.jit(function=cell, jit_level="O0"), cell)
