"""The inputs of a step that all layers of a CPU's decoder share, made once."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, nn, ops

from msx_llm.models.config import DecoderConfig
from msx_llm.models.kernels import LayerKind, distinct
from msx_llm.models.masks import Masks, TwoWayMasks
from msx_llm.models.rope import tables_of_all

STATES = 4
"""Inputs of `StateLayout.places`."""


class SlotStepInputs(nn.Cell):  # type: ignore[misc]
    """-> (for each of the `kinds` the angles of queries and of keys, a mask, and places; places of states). Kinds share
    what is alike. B is texts, P tokens of each, T = B*P."""

    def __init__(self, config: DecoderConfig, kinds: tuple[LayerKind, ...], dtype: Any) -> None:
        super().__init__()
        self.config, self.dtype, self.stretches = config, dtype, config.stretches
        self.states = config.delta is not None
        self.turns, of_turns = distinct((kind.rope, kind.heads.queries, kind.heads.keys) for kind in kinds)
        seen, of_masks = distinct((kind.window, kind.heads.queries, kind.heads.keys) for kind in kinds)
        _, of_layouts = distinct(kind.heads.keys for kind in kinds)
        self.shares = tuple(zip(of_turns, of_masks, of_layouts, strict=True))
        self.masks = (Masks if config.causal else TwoWayMasks)(seen, dtype)
        self.gather, self.tile = ops.Gather(), ops.Tile()
        self.halves, self.join, self.negate = ops.Split(-1, 2), ops.Concat(-1), ops.Neg()

    def prepare(self, length: int) -> None:
        if not self.stretches:
            tables = tables_of_all(self.config, length)
            self.tables = tuple((Tensor(cos, self.dtype), Tensor(sin, self.dtype)) for cos, sin in tables)

    def construct(self, positions: Any, reach: Any, *places: Any) -> Any:
        """positions [B, P], reach: 0 … the last position that is attended to, places: two of each layout of the cache,
        and behind them those of states where there are some.

        Where the angles of a position depend on its text, cos and sin of each token [T, D] come before `places`.
        """
        states: Any = ()
        if self.states:
            places, states = places[:-STATES], places[-STATES:]
        if self.stretches:
            tables, places = ((places[0], places[1]),), places[2:]
        else:
            tables = self.gathered(positions.reshape((-1,)))
        angles, masks = self.of_heads(tables), self.masks(positions, reach, places)
        made: Any = ()
        for turn, mask, layout in self.shares:
            made = (*made, (angles[turn], masks[mask], places[2 * layout : 2 * layout + 2]))
        return made, states

    def gathered(self, flat: Any) -> Any:
        found: Any = ()
        for cos, sin in self.tables:
            found = (*found, (self.gather(cos, flat, 0), self.gather(sin, flat, 0)))
        return found

    def of_heads(self, tables: Any) -> Any:
        found: Any = ()
        for rope, queries, keys in self.turns:
            cos, sin = tables[rope]
            first, second = self.halves(sin)
            sin = self.join((self.negate(first), second))
            found = (*found, (self.angles(cos, sin, queries), self.angles(cos, sin, keys)))
        return found

    def angles(self, cos: Any, sin: Any, heads: int) -> Any:
        """-> cos and sin [T, heads, D], as `HalfTurn` takes them"""
        cos, sin = ops.expand_dims(cos, 1), ops.expand_dims(sin, 1)
        return self.tile(cos, (1, heads, 1)), self.tile(sin, (1, heads, 1))
