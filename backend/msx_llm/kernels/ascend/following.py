"""Tokens that stay on the device: those that a step has chosen are the next step's input before the host reads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msx_llm.kernels.ascend.choosing import TokenChooser, compiled
from msx_llm.kernels.ascend.penalties import Penalties
from msx_llm.models.kernels import Array
from msx_llm.sampling.choice import TokenChoice
from msx_llm.step import UNREAD, TokenChunk
from msx_sdk.mindspore import collectives
from msx_sdk.mindspore.parallel import Parallel


class FollowingTokens(nn.Cell):  # type: ignore[misc]
    """tokens int32 [T], rows int32 [T], ids int32 [R] -> [T]: a token's row of ids, or itself where the row is -1."""

    def construct(self, tokens: Any, rows: Any, ids: Any) -> Any:
        chosen = ops.gather(ids, ops.maximum(rows, 0), 0)
        return ops.where(rows >= 0, chosen, tokens)


class ChosenTokens:
    """Chooses a step's tokens and keeps them for the next one. All ranks of a tensor parallel group have the same ones,
    which the one that answers chooses: others might differ in the last bit."""

    def __init__(self, chooser: TokenChooser, parallel: Parallel, slots: int, eager: bool) -> None:
        self._chooser, self._parallel = chooser, parallel
        self._table, self._eager = (slots, chooser.vocabulary), eager
        open_ = Tensor(shape=[None], dtype=ms.int32)
        self._following = compiled(FollowingTokens(), (open_, open_, open_), eager)
        self._ids: Any = None
        self._rows: dict[int, int] = {}

    def choose(self, logits: Any, chunks: Sequence[TokenChunk], choices: Sequence[TokenChoice]) -> Any:
        """logits float32 [R, vocab] of each chunk -> ids int32 [R]; with pipeline stages only the rank that
        answers has them."""
        self._rows = {}
        if self._chooses:
            ids = self._chosen(logits, [chunk.slot for chunk in chunks], choices)
        else:
            ids = Tensor(np.zeros(len(chunks), np.int32))
        if self._parallel.tp_size > 1 and self._parallel.stages == 1:
            ids = collectives.broadcast(ids, self._parallel.tp_ranks[0], self._parallel.tp_group)
        self._ids, self._rows = ids, {chunk.slot: row for row, chunk in enumerate(chunks)}
        return ids

    def _chosen(self, logits: Any, slots: Sequence[int], choices: Sequence[TokenChoice]) -> Any:
        if not any(choice.penalizes for choice in choices):
            return self._chooser(logits, choices)
        ids = self._chooser(self._penalties.apply(logits, slots, choices), choices)
        self._penalties.count(slots, ids, choices)
        return ids

    def recount(self, slot: int, ids: Sequence[int], counts: Sequence[int]) -> None:
        """See `Recount`."""
        if self._chooses:
            self._penalties.recount(slot, ids, counts)

    @property
    def _chooses(self) -> bool:
        return self._parallel.tp_rank == 0 and self._parallel.last_stage

    @cached_property
    def _penalties(self) -> Penalties:
        """Not made for `deviceSampling: false`."""
        return Penalties(*self._table, self._eager)

    def follow(self, tokens: Array, chunks: Sequence[TokenChunk]) -> Any:
        """tokens int32 [T] of the chunks, and others behind them -> the same, if none is `UNREAD`; else a tensor that
        has the chosen ones.

        Raises ValueError if the last step that chose had no such slot."""
        if UNREAD not in tokens:
            return tokens
        rows = [self._row(chunk.slot) if chunk.tokens == (UNREAD,) else -1 for chunk in chunks]
        places = np.full(len(tokens), -1, np.int32)
        own = np.repeat(rows, [len(chunk.tokens) for chunk in chunks])
        places[: len(own)] = own
        return self._following(Tensor(tokens), Tensor(places), self._ids)

    def _row(self, slot: int) -> int:
        if slot not in self._rows:
            raise ValueError(f"slot {slot}: the step before has not chosen a token for it")
        return self._rows[slot]
