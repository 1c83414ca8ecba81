"""Rotates queries and keys by their positions."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor

from tests.emulated_ascend.host import Array, Floats, array, floats, tensor
from tests.emulated_ascend.operator import HALF, Operator

HALVES, PAIRS = 2, 3
"""Values of cos_format: what turns together is D/2 apart, or side by side."""


class ApplyRotaryPosEmb(Operator):
    def __init__(self, cos_format: int = 0) -> None:
        self.cos_format = cos_format

    def compute(self, query: Any, key: Any, cos: Any, sin: Any, position_ids: Any) -> tuple[Tensor, Tensor]:
        """-> query, key. `position_ids` are the lengths of the texts, in spite of the name."""
        self.constant(cos_format=(HALVES, PAIRS))
        self._tables(query, key, cos, sin)
        lengths = self._lengths(query, position_ids)
        rows = self._rows(query, cos, lengths)
        angles = floats(cos)[rows], floats(sin)[rows]
        return self._turn(query, *angles), self._turn(key, *angles)

    def _tables(self, query: Any, key: Any, cos: Any, sin: Any) -> None:
        for name, came in (("query", query), ("key", key), ("cos", cos), ("sin", sin)):
            self.tensor(name, came, HALF, 2)
            self.same_dtype(name, came, "query", query)
        self.shape("sin", sin, *cos.shape)
        self.require(key.shape[0] == query.shape[0] > 0, "key", key, f"it must have query's {query.shape[0]} tokens")
        size = int(cos.shape[1])
        self.require(size and size % 16 == 0, "cos", cos, "its width must be a multiple of 16")
        for name, came in (("query", query), ("key", key)):
            self.require(
                came.shape[1] and came.shape[1] % size == 0, name, came, f"its width must divide by cos's {size}"
            )
        for name, came in (("cos", cos), ("sin", sin)):
            first, second = self._parts(floats(came))
            rule = "both parts of each row that turn together have one angle: its halves, or its pairs"
            self.require(np.array_equal(first, second), name, came, rule)

    def _lengths(self, query: Any, position_ids: Any) -> Array:
        self.tensor("position_ids", position_ids, (ms.int32,), 1)
        lengths, tokens = array(position_ids), query.shape[0]
        fits = 0 < len(lengths) <= tokens and lengths.min() >= 1
        rule = f"it is the length, 1 or more, of each text of query's {tokens} tokens"
        self.require(fits, "position_ids", lengths, rule)
        return lengths

    def _rows(self, query: Any, cos: Any, lengths: Array) -> Array:
        """Rows of cos of each token: those of its positions where each text begins, its own else. Neither stack has
        another form, and what a kernel would make of one is not known."""
        tokens = query.shape[0]
        if lengths.sum() == tokens:
            rule = f"where each text begins it must be the whole table, with more rows than {tokens} tokens"
            self.require(cos.shape[0] > tokens, "cos", cos, rule)
            return np.concatenate([np.arange(length) for length in lengths])
        self.require(cos.shape[0] == tokens, "cos", cos, "it must have a row of each token where a text goes on")
        return np.arange(tokens)

    def _parts(self, values: Floats) -> tuple[Floats, Floats]:
        if self.cos_format == PAIRS:
            return values[..., 0::2], values[..., 1::2]
        half = values.shape[-1] // 2
        return values[..., :half], values[..., half:]

    def _turn(self, tokens: Any, cos: Floats, sin: Floats) -> Tensor:
        values = floats(tokens).reshape(tokens.shape[0], -1, cos.shape[1])
        first, second = self._parts(values)
        if self.cos_format == PAIRS:
            turned = np.stack((-second, first), axis=-1).reshape(values.shape)
        else:
            turned = np.concatenate((-second, first), axis=-1)
        result = values * cos[:, None] + turned * sin[:, None]
        return tensor(result.reshape(tuple(tokens.shape)), tokens.dtype)
