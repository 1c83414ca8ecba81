"""States of texts, for CPUs: two rows for each slot, of a fixed size: the last state, and one that is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msx_llm.models.kernels import Array

ZEROS, PADDING, FIRST = 0, 1, 2
"""Rows: one that is never written, with which texts begin; one that takes the states of padding; that of slot 0."""
ROWS = 2
"""The rows of a slot."""


class StateLayout:
    """All ranks take the same steps, and know by them how many tokens each state has seen."""

    def __init__(self, slots: int, kernel: int) -> None:
        """`kernel`: tokens that a convolution sees."""
        self.size, self._kernel = FIRST + ROWS * slots, kernel
        """The number of rows."""
        self._lengths: dict[int, int] = {}

    def places(self, slots: Sequence[int | None], positions: Array) -> list[Array]:
        """The states of B texts that get the tokens at `positions` [B, P]; a position below 0, or the slot None, is
        padding. -> rows [B] to read and to write, 1 for tokens and 0 for padding [B*P], and for one text with several
        tokens the last ones that the next convolution sees [kernel - 1], counted from those before the step."""
        counts = (positions >= 0).sum(-1)
        steps = list(zip(slots, positions[:, 0].tolist(), counts.tolist(), strict=True))
        before = [ZEROS if slot is None or start <= 0 else self.row(slot, start) for slot, start, _ in steps]
        after = [
            self._moved(slot, start + count) if slot is not None and count else PADDING for slot, start, count in steps
        ]
        valid, tail = (positions >= 0).ravel(), counts[0] + np.arange(self._kernel - 1)
        return [np.array(before), np.array(after), valid, tail]

    def row(self, slot: int, length: int) -> int:
        """The row that has the state behind `length` tokens. Raises ValueError."""
        first = FIRST + ROWS * slot
        for row in range(first, first + ROWS):
            if self._lengths.get(row) == length:
                return row
        raise ValueError(f"slot {slot} has no state behind {length} tokens")

    def kept(self, slot: int) -> tuple[int, int]:
        """The last state becomes the one that is kept. -> rows to copy from and to"""
        last = FIRST + ROWS * slot
        self._lengths[last + 1] = self._lengths.get(last, 0)
        return last, last + 1

    def copied(self, source: int, target: int, length: int) -> tuple[Array, Array]:
        """Another slot begins as `source` does, and keeps that; within a slot, the kept state is the last one again.
        -> rows to copy from and to"""
        row = self.row(source, length)
        targets = [self._moved(target, length)]
        if source != target:
            targets.append(self.kept(target)[1])
        return np.full(len(targets), row), np.array(targets)

    def forget(self) -> None:
        """The memory has lost all states."""
        self._lengths.clear()

    def _moved(self, slot: int, length: int) -> int:
        last = FIRST + ROWS * slot
        self._lengths[last] = length
        return last
