"""States of texts, for CPUs, in rows of a fixed size: of each slot the last one, and one that is kept; and those behind
drafted tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msx_llm.models.delta import DeltaConfig
from msx_llm.models.kernels import Array

ZEROS, PADDING, FIRST = 0, 1, 2
"""Rows: one that is never written, with which texts begin; one that takes the states of padding; that of slot 0."""
ROWS = 2
"""The rows of a slot. Those of drafted tokens follow those of all slots."""


class StateLayout:
    """All ranks take the same steps, and know by them how many tokens each state has seen.

    A drafted token may be wrong. The first token of a text in a step moves the slot's last state; those behind it leave
    states in rows of their own: the text's next step says by its position behind which of them it goes on, and gives
    the others back. Where more are needed than there are, the oldest are lost; `Speculator` sees to it that these are
    of texts that have ended.
    """

    def __init__(self, delta: DeltaConfig, sizes: Sequence[int]) -> None:
        """`sizes`: texts of decoding steps; the largest one is the number of slots."""
        self.sizes, self._kernel, slots = tuple(sizes), delta.kernel, sizes[-1]
        self._rows_of_drafts = range(FIRST + ROWS * slots, FIRST + (ROWS + delta.drafts) * slots)
        self.size = self._rows_of_drafts.stop
        """The number of rows."""
        self._lengths: dict[int, int] = {}
        self._drafts: dict[int, tuple[int, int]] = {}
        """The slot, and how many tokens were seen, of each row of drafts that somebody may need."""

    def places(self, slots: Sequence[int | None], positions: Array) -> list[Array]:
        """The states of B texts that get the tokens at `positions` [B, P]; a position below 0, or the slot None, is
        padding. -> rows [B] to read and to write, the number of the text from 1 on for tokens and 0 for padding [B*P],
        and what the convolution sees: for one text with several tokens the last ones that the next step sees
        [kernel - 1], counted from those before the step; where tokens may be drafted, see `_seen`."""
        counts = (positions >= 0).sum(-1)
        steps = list(zip(slots, positions[:, 0].tolist(), counts.tolist(), strict=True))
        if self._rows_of_drafts and positions.shape[1] == 1 and len(slots) > 1:
            return self._with_drafts([(slot, start) for slot, start, _ in steps])
        before = [ZEROS if slot is None or start <= 0 else self.row(slot, start) for slot, start, _ in steps]
        after = [
            self._moved(slot, start + count) if slot is not None and count else PADDING for slot, start, count in steps
        ]
        valid, tail = (positions >= 0).ravel(), counts[0] + np.arange(self._kernel - 1)
        return [np.array(before), np.array(after), valid, tail]

    def row(self, slot: int, length: int) -> int:
        """The row that has the state behind `length` tokens. Raises ValueError.

        The kept one comes last: it may be that of an earlier text of the slot, which others go on behind by `copied`.
        """
        last = FIRST + ROWS * slot
        held = {last: self._lengths.get(last)}
        held |= {row: seen for row, (owner, seen) in self._drafts.items() if owner == slot}
        held |= {last + 1: self._lengths.get(last + 1)}
        for row, seen in held.items():
            if seen == length:
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
        self._drafts.clear()

    def _with_drafts(self, steps: Sequence[tuple[int | None, int]]) -> list[Array]:
        """`places` of one token a row: a slot that comes again has drafted tokens there, which follow each other. All
        rows are read before any is written."""
        texts = {slot: number for number, slot in enumerate(dict.fromkeys(slot for slot, _ in steps), 1)}
        first = dict(reversed(steps))
        before = {slot: ZEROS if slot is None or start <= 0 else self.row(slot, start) for slot, start in first.items()}
        self._drafts = {row: held for row, held in self._drafts.items() if held[0] not in first}
        after = [self._written(slot, start, start == first[slot]) for slot, start in steps]
        numbers = [0 if slot is None else texts[slot] for slot, _ in steps]
        return [np.array([before[slot] for slot, _ in steps]), np.array(after), np.array(numbers), self._seen(steps)]

    def _written(self, slot: int | None, start: int, first: bool) -> int:
        if slot is None:
            return PADDING
        if first:
            return self._moved(slot, start + 1)
        row = next((row for row in self._rows_of_drafts if row not in self._drafts), None)
        if row is None:
            row = next(iter(self._drafts))
            del self._drafts[row]
        self._drafts[row] = slot, start + 1
        return row

    def _seen(self, steps: Sequence[tuple[int | None, int]]) -> Array:
        """Tokens that the convolution sees at each row [kernel * B], those of one place in it after the other: numbers
        among the earlier ones that the rows have, `kernel - 1` each, and behind these the tokens of the step."""
        earlier, own = self._kernel - 1, dict[int | None, list[int]]()
        seen = []
        for row, (slot, _) in enumerate(steps):
            tokens = own.setdefault(slot, [])
            tokens.append(len(steps) * earlier + row)
            begun = tokens if slot is not None else tokens[-1:]
            seen.append([*range(row * earlier, (row + 1) * earlier), *begun][-self._kernel :])
        return np.array(seen).T.ravel()

    def _moved(self, slot: int, length: int) -> int:
        last = FIRST + ROWS * slot
        self._lengths[last] = length
        self._drafts = {row: held for row, held in self._drafts.items() if held[0] != slot}
        return last
