"""The delta rule in plain operators: token by token for a step of many texts, and in pieces of 64 tokens for a prompt,
whose tokens are solved for together (Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule"), as
drafted tokens are (`drafted_delta.py`)."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

PIECE = 64
"""Tokens that are solved for together: the work for each grows with their number, the steps of a prompt shrink."""


class UnitInverse(nn.Cell):  # type: ignore[misc]
    """x [N, P, P], of which what is below the diagonal counts -> the inverse of x with ones on the diagonal.

    Blocks are doubled: an inverse of two blocks follows from those of both, so that no number grows beyond those of
    the result, as powers of x would.
    """

    def __init__(self, size: int) -> None:
        """`size`: P."""
        super().__init__()
        self.unit, self.product = Tensor(np.eye(size, dtype=np.float32)[None]), ops.BatchMatMul()
        self.levels = tuple(Tensor(level[None]) for level in levels(size))
        self.tile = ops.Tile()

    def construct(self, x: Any) -> Any:
        many = (x.shape[0], 1, 1)
        inverse = self.tile(self.unit, many)
        for number, level in enumerate(self.levels):
            between = x * self.tile(level, many)
            if number:
                between = self.product(self.product(inverse, between), inverse)
            inverse = inverse - between
        return inverse


def levels(size: int) -> list[Any]:
    """Mark the places below the diagonal between two neighbouring blocks of 1, of 2, of 4 …: 1 there, else 0."""
    found, block, numbers = [], 1, np.arange(size)
    while block < size:
        pairs, second = numbers // (2 * block), numbers // block % 2 == 1
        found.append(((pairs[:, None] == pairs) & second[:, None] & ~second).astype(np.float32))
        block *= 2
    return found


class TokenRule(nn.Cell):  # type: ignore[misc]
    """One token of each of B texts. In shapes, H is heads, D the numbers of a key, V of a value."""

    def __init__(self, key: int, value: int) -> None:
        super().__init__()
        self.key, self.value = key, value
        self.product, self.rows, self.halves = ops.BatchMatMul(), ops.Concat(1), ops.Split(1, 2)
        self.outer, self.exp, self.sum = ops.BatchMatMul(transpose_a=True), ops.Exp(), ops.ReduceSum(keep_dims=True)

    def construct(self, q: Any, k: Any, v: Any, decay: Any, rate: Any, state: Any) -> Any:
        """q, k [B, H, D], v [B, H, V], decay (a logarithm), rate [B, H], state [B, H*D*V] -> [B, H, V], state"""
        texts, heads = decay.shape
        many = texts * heads
        q, k = q.reshape((many, 1, self.key)), k.reshape((many, 1, self.key))
        v, rate = v.reshape((many, 1, self.value)), rate.reshape((many, 1, 1))
        kept, state = self.exp(decay).reshape((many, 1, 1)), state.reshape((many, self.key, self.value))
        known, seen = self.halves(self.product(self.rows((k, q)), state) * kept)
        new = (v - known) * rate
        state = state * kept + self.outer(k, new)
        made = seen + self.sum(q * k, -1) * new
        return made.reshape((texts, heads, self.value)), state.reshape((texts, -1))


class PromptRule(nn.Cell):  # type: ignore[misc]
    """Several tokens of one text, in pieces."""

    def __init__(self, key: int, value: int) -> None:
        super().__init__()
        self.key, self.value, self.inverse = key, value, UnitInverse(PIECE)
        lower = np.tril(np.ones((PIECE, PIECE), np.float32))
        self.until, self.lower, self.below = (Tensor(it) for it in (lower.T, lower[None], np.tril(lower, -1)[None]))
        self.product, self.scores = ops.BatchMatMul(), ops.BatchMatMul(transpose_b=True)
        self.outer, self.add_up = ops.BatchMatMul(transpose_a=True), ops.MatMul()
        self.exp, self.tile, self.join = ops.Exp(), ops.Tile(), ops.Concat(0)

    def construct(self, q: Any, k: Any, v: Any, decay: Any, rate: Any, state: Any) -> Any:
        """q, k [T, H, D], v [T, H, V], decay, rate [T, H], state [1, H*D*V] -> [T, H, V], state"""
        tokens, heads = decay.shape
        pieces = -(-tokens // PIECE)
        many = pieces * heads
        q, k, v, rate = self.by_heads(q), self.by_heads(k), self.by_heads(v), self.by_heads(ops.expand_dims(rate, 2))
        sums = self.add_up(self.by_heads(ops.expand_dims(decay, 2)).reshape((many, PIECE)), self.until)
        rows, columns = sums.reshape((many, PIECE, 1)), sums.reshape((many, 1, PIECE))
        weights = self.exp(ops.minimum(rows - columns, 0.0))
        solved = self.inverse(self.scores(k * rate, k) * weights * self.tile(self.below, (many, 1, 1)))
        grown = self.exp(rows)
        values, known = self.product(solved, v * rate), self.product(solved, k * (rate * grown))
        seen = self.scores(q, k) * weights * self.tile(self.lower, (many, 1, 1))
        last = rows[:, PIECE - 1 :]
        parts = values, known, seen, q * grown, k * self.exp(last - rows), self.exp(last)
        made, state = self.turns(parts, pieces, state.reshape((heads, self.key, self.value)))
        made = made.reshape((pieces, heads, PIECE, self.value)).transpose((0, 2, 1, 3))
        return made.reshape((-1, heads, self.value))[:tokens], state.reshape((1, -1))

    def turns(self, parts: Any, pieces: int, state: Any) -> Any:
        """One piece after the other."""
        values, known, seen, queries, keys, kept = parts
        made: Any = ()
        heads = state.shape[0]
        for piece in range(pieces):
            first, last = piece * heads, (piece + 1) * heads
            new = values[first:last] - self.product(known[first:last], state)
            made = (*made, self.product(queries[first:last], state) + self.product(seen[first:last], new))
            state = state * kept[first:last] + self.outer(keys[first:last], new)
        return self.join(made), state

    def by_heads(self, x: Any) -> Any:
        """[T, H, n] -> [pieces * H, PIECE, n]; behind the tokens are zeros, which leave a state as it is"""
        count, heads, width = x.shape
        missing = -count % PIECE
        if missing:
            x = self.join((x, ops.zeros((missing, heads, width), ms.float32)))
        x = x.reshape((-1, PIECE, heads, width)).transpose((0, 2, 1, 3))
        return x.reshape((-1, PIECE, width))
