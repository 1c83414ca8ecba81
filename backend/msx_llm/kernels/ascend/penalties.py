"""Penalties on the device: a table of the tokens that each slot's text has, and logits changed by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from msx_llm.kernels.ascend.choosing import compiled
from msx_llm.sampling.choice import TOKEN_MADE, TokenChoice


class PenalizedLogits(nn.Cell):  # type: ignore[misc]
    """Penalties by the host's rules (sampling/adjustments.py): repetition of what the text or its prompt has, then
    frequency and presence of what was made."""

    def __init__(self, table: Any) -> None:
        super().__init__()
        self.table = table

    def construct(self, logits: Any, slots: Any, numbers: Any) -> Any:
        """logits float32 [R, vocab]; slots int32 [R]; numbers float32 [3, R]: frequency, presence, repetition ->
        [R, vocab]"""
        columns, seen = ops.expand_dims(numbers, -1), ops.gather(self.table, slots, 0)
        made = seen // TOKEN_MADE
        repeated = ops.where(logits > 0, logits / columns[2], logits * columns[2])
        moved = ops.where(seen > 0, repeated, logits)
        return moved - columns[0] * made.astype(ms.float32) - columns[1] * (made > 0).astype(ms.float32)


class CountedTokens(nn.Cell):  # type: ignore[misc]
    """slots, ids and counts int32 [R]: adds the counts to the table, but none for an id of -1."""

    def __init__(self, table: Any) -> None:
        super().__init__()
        self.table = table

    def construct(self, slots: Any, ids: Any, counts: Any) -> Any:
        places = ops.stack((slots, ops.maximum(ids, 0)), -1)
        return ops.scatter_nd_add(self.table, places, counts * (ids >= 0).astype(ms.int32))


class RecountedSlot(nn.Cell):  # type: ignore[misc]
    """slot int32 [1], row int32 [1, vocab]: the slot's row of the table."""

    def __init__(self, table: Any) -> None:
        super().__init__()
        self.table = table

    def construct(self, slot: Any, row: Any) -> Any:
        return ops.scatter_update(self.table, slot, row)


class Penalties:
    """The table, int32 [slots, vocab] (see `Recount`), and its three graphs with open shapes."""

    def __init__(self, slots: int, vocabulary: int, eager: bool) -> None:
        self._vocabulary = vocabulary
        table = Parameter(ops.zeros((slots, vocabulary), ms.int32), "seen_tokens", requires_grad=False)
        logits, texts = Tensor(shape=[None, vocabulary], dtype=ms.float32), Tensor(shape=[None], dtype=ms.int32)
        numbers, row = Tensor(shape=[3, None], dtype=ms.float32), Tensor(shape=[1, vocabulary], dtype=ms.int32)
        self._penalized = compiled(PenalizedLogits(table), (logits, texts, numbers), eager)
        self._counted = compiled(CountedTokens(table), (texts, texts, texts), eager)
        self._recounted = compiled(RecountedSlot(table), (Tensor(shape=[1], dtype=ms.int32), row), eager)

    def recount(self, slot: int, ids: Sequence[int], counts: Sequence[int]) -> None:
        row = np.zeros((1, self._vocabulary), np.int32)
        row[0, list(ids)] = counts
        self._recounted(Tensor(np.array([slot], np.int32)), Tensor(row))

    def apply(self, logits: Any, slots: Sequence[int], choices: Sequence[TokenChoice]) -> Any:
        """logits float32 [R, vocab] -> [R, vocab]; those of texts without penalties stay as they are."""
        numbers = np.array([(it.frequency, it.presence, it.repetition) for it in choices], np.float32)
        return self._penalized(logits, _ints(slots), Tensor(np.ascontiguousarray(numbers.T)))

    def count(self, slots: Sequence[int], ids: Any, choices: Sequence[TokenChoice]) -> None:
        """ids int32 [R], on the device: texts with penalties have grown by these."""
        self._counted(_ints(slots), ids, _ints([TOKEN_MADE * it.penalizes for it in choices]))


def _ints(values: Sequence[int]) -> Any:
    return Tensor(np.array(values, np.int32))
