"""Chooses the next tokens where the logits are, so that ids alone go to the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msx_llm.sampling.choice import TokenChoice

COLDEST = 1e-30
"""The lowest divisor of logits, on the host as well."""
NO_TOKEN = -1
"""Where logits are not finite."""
BLOCK = 512
"""About as many weights as a large vocabulary has blocks."""


class LikeliestTokens(nn.Cell):  # type: ignore[misc]
    """logits float32 [R, vocab] -> ids int32 [R]; among equal ones the first."""

    def construct(self, logits: Any) -> Any:
        return likeliest_of(logits, ops.amax(logits, -1, True))


class DrawnTokens(nn.Cell):  # type: ignore[misc]
    """Draws by the host's rules (sampling/filters.py, draw.py), in float32: top-k first, then of what it leaves the
    fewest of the likeliest with the share top-p, then min-p; ties of the last one stay. The token is the one whose
    interval has the uniform number, when the weights are laid side by side in the order of their ids."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.missing, self.blocks = -vocabulary % BLOCK, -(-vocabulary // BLOCK)

    def construct(self, logits: Any, numbers: Any, top_k: Any) -> Any:
        """logits float32 [R, vocab]; numbers float32 [4, R]: temperature (0 takes the likeliest), top_p, min_p, uniform
        in [0, 1); top_k int32 [R], 1 to vocab -> ids int32 [R]"""
        columns, peak = ops.expand_dims(numbers, -1), ops.amax(logits, -1, True)
        weights = ops.exp((logits - peak) / ops.maximum(columns[0], COLDEST))
        floor = ops.maximum(self.floor(weights, columns[1], ops.expand_dims(top_k, -1)), columns[2])
        drawn = self.place(weights * (weights >= floor).astype(ms.float32), columns[3], True)
        likeliest = likeliest_of(logits, peak)
        return ops.where(ops.logical_and(numbers[0] > 0, likeliest >= 0), drawn[:, 0], likeliest)

    def floor(self, weights: Any, top_p: Any, top_k: Any) -> Any:
        """The weight of the last token that stays [R, 1]."""
        ordered = ops.sort(weights, -1, True)[0]
        kth = ops.gather_elements(ordered, 1, top_k - 1)
        place = self.place(ordered * (ordered >= kth).astype(ms.float32), top_p, False)
        return ops.where(top_p < 1, ops.gather_elements(ordered, 1, place), kth)

    def place(self, weights: Any, share: Any, beyond: bool) -> Any:
        """Where weights [R, vocab], laid side by side, reach `share` [R, 1] of them all, or come `beyond` it [R, 1].

        The block first, then the place in it, as on the host: the cumulative sum of a whole vocabulary in single
        precision would be off by some tokens' weight.
        """
        blocks = ops.pad(weights, (0, self.missing)).reshape((-1, self.blocks, BLOCK))
        sums = blocks.sum(-1)
        ends = ops.cumsum(sums, -1)
        target = share * ends[:, -1:]
        block = self.first(ends, target, beyond)
        inside = ops.gather_elements(blocks, 1, ops.tile(ops.expand_dims(block, -1), (1, 1, BLOCK)))[:, 0]
        left = ops.maximum(target - ops.gather_elements(ends - sums, 1, block), 0.0)
        return block * BLOCK + self.first(ops.cumsum(inside, -1), left, beyond)

    def first(self, ends: Any, target: Any, beyond: bool) -> Any:
        """The first end that reaches the target, or, if rounding put the target behind all, the last with weight."""
        before = ends <= target if beyond else ends < target
        return ops.minimum(self.count(before), self.count(ends < ends[:, -1:]))

    def count(self, found: Any) -> Any:
        return found.astype(ms.int32).sum(-1, keepdims=True).astype(ms.int32)  # a sum of int32 is int64


def likeliest_of(logits: Any, peak: Any) -> Any:
    """peak [R, 1]: the largest of each row."""
    ids = ops.argmax(logits, -1).astype(ms.int32)
    broken = ops.logical_or(ops.isnan(logits).any(-1), ops.logical_not(ops.isfinite(peak[:, 0])))
    return ops.where(broken, ops.full_like(ids, NO_TOKEN), ids)


class TokenChooser:
    """Each way is compiled once for any number of texts, as a graph behind that of the step: what is drawn has to be
    sorted, which steps without such texts need not do."""

    def __init__(self, vocabulary: int, eager: bool) -> None:
        """`eager` runs the cells without graphs."""
        self.vocabulary = vocabulary
        logits, numbers = Tensor(shape=[None, vocabulary], dtype=ms.float32), Tensor(shape=[4, None], dtype=ms.float32)
        self._likeliest = compiled(LikeliestTokens(), (logits,), eager)
        top_k = Tensor(shape=[None], dtype=ms.int32)
        self._drawn = compiled(DrawnTokens(vocabulary), (logits, numbers, top_k), eager)

    def __call__(self, logits: Any, choices: Sequence[TokenChoice]) -> Any:
        """logits float32 [R, vocab] -> ids int32 [R], -1 where the logits are not finite."""
        if not any(choice.temperature for choice in choices):
            return self._likeliest(logits)
        numbers = np.array([(it.temperature, it.top_p, it.min_p, it.uniform) for it in choices], np.float32)
        top_k = np.array([min(it.top_k or self.vocabulary, self.vocabulary) for it in choices], np.int32)
        return self._drawn(logits, Tensor(np.ascontiguousarray(numbers.T)), Tensor(top_k))


def compiled(cell: Any, inputs: Sequence[Any], eager: bool) -> Callable[..., Any]:
    """The cell as a graph for inputs of open shapes, or itself."""
    if eager:
        return cell  # type: ignore[no-any-return]
    cell.set_inputs(*inputs)
    return ms.jit(function=cell, jit_level="O0")  # type: ignore[no-any-return]
