"""The delta rule for steps that may have drafted tokens: each goes on from the state of the token before, and leaves
one of its own, so that a text can go on behind any of them."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msx_llm.kernels.cpu.delta import UnitInverse


class DraftedRule(nn.Cell):  # type: ignore[misc]
    """B tokens, one or several of each text, which are solved for together as those of a prompt are. In shapes, H is
    heads, D the numbers of a key, V of a value."""

    def __init__(self, key: int, value: int, tokens: int) -> None:
        """`tokens`: B."""
        super().__init__()
        self.key, self.value, self.tokens, self.inverse = key, value, tokens, UnitInverse(tokens)
        lower = np.tril(np.ones((tokens, tokens), np.float32))
        self.lower, self.below = Tensor(lower), Tensor(np.tril(lower, -1)[None])
        self.product, self.scores = ops.BatchMatMul(), ops.BatchMatMul(transpose_b=True)
        self.outer, self.add_up = ops.BatchMatMul(transpose_a=True), ops.MatMul(transpose_b=True)
        self.exp, self.tile, self.rows, self.halves = ops.Exp(), ops.Tile(), ops.Concat(1), ops.Split(1, 2)
        self.equal = ops.Equal()

    def construct(self, q: Any, k: Any, v: Any, decay: Any, rate: Any, state: Any, texts: Any) -> Any:
        """q, k [B, H, D], v [B, H, V], decay (a logarithm), rate [B, H], state [B, H*D*V] before the first token of the
        same text, texts [B]: a number for each -> [B, H, V], the state behind each token"""
        alike = self.equal(ops.expand_dims(texts, 1), ops.expand_dims(texts, 0)).astype(ms.float32) * self.lower
        sums = self.add_up(decay.transpose((1, 0)), alike)
        weights, grown = self.weights(sums, alike), ops.expand_dims(self.exp(sums), 2)
        q, k, v, rate = self.turned(q), self.turned(k), self.turned(v), self.turned(ops.expand_dims(rate, 2))
        below = self.tile(self.below, (grown.shape[0], 1, 1))
        solved = self.inverse(self.scores(k * rate, k) * weights * below)
        asked = self.rows((self.row(self.product(solved, k * (rate * grown))), self.row(q * grown)))
        state = state.reshape((-1, self.key, self.value))
        known, seen = self.halves(self.product(asked, state))
        new = self.product(solved, v * rate) - self.by_heads(known)
        made = self.by_heads(seen) + self.product(self.scores(q, k) * weights, new)
        state = state * self.row(grown) + self.added(k, new, weights)
        return self.turned(made), state.reshape((self.tokens, -1))

    def weights(self, sums: Any, alike: Any) -> Any:
        """The share that is left, at each token, of those before it in its text [H, B, B]."""
        rows, columns = ops.expand_dims(sums, 2), ops.expand_dims(sums, 1)
        return self.exp(ops.minimum(rows - columns, 0.0)) * self.tile(ops.expand_dims(alike, 0), (sums.shape[0], 1, 1))

    def added(self, k: Any, new: Any, weights: Any) -> Any:
        """Add up what the tokens of a text have brought to its state, until each one [B*H, D, V]."""
        keys = self.tile(ops.expand_dims(k, 1), (1, self.tokens, 1, 1)) * ops.expand_dims(weights, 3)
        keys = keys.transpose((1, 0, 2, 3)).reshape((-1, self.tokens, self.key))
        return self.outer(keys, self.tile(new, (self.tokens, 1, 1)))

    def turned(self, x: Any) -> Any:
        """[B, H, n] <-> [H, B, n]"""
        return x.transpose((1, 0, 2))

    def row(self, x: Any) -> Any:
        """[H, B, n] -> [B*H, 1, n]"""
        return self.turned(x).reshape((-1, 1, x.shape[2]))

    def by_heads(self, x: Any) -> Any:
        """[B*H, 1, n] -> [H, B, n]"""
        return self.turned(x.reshape((self.tokens, -1, x.shape[2])))
