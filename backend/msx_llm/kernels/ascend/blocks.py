"""Blocks of keys and values that texts take as they grow: which block of which size holds what."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from msx_llm.models.config import MULTIPLE, DecoderConfig
from msx_llm.models.kernels import Array
from msx_sdk.errors import HandlerLoadError

SIZES = (128, 64, 32, 16)
"""Tokens of a block that the kernels know."""
MOST = 16384
"""Numbers of a head in one block, at most (messages of MindSpore 2.10's kernels)."""
WIDEST, WIDEST_LATENT = 256, 576
NOWHERE = -1
"""The place of a token that is not kept."""
ALWAYS, NEVER = -1, 1 << 30
"""Positions of what every token sees, and of what none does."""


class FlatArrays(NamedTuple):
    """The integer inputs of a step, all int32: T tokens of B texts, L columns of tables."""

    positions: Array
    slots: Array
    tables: Array
    lengths: Array
    q_lengths: Array


def block_size(head_size: int) -> int:
    """The largest size of a block for heads of this size. Raises HandlerLoadError where there is none."""
    if head_size % MULTIPLE or head_size > WIDEST:
        raise HandlerLoadError(
            f"config.json, head_dim: {head_size}: attention on Ascend NPUs needs a multiple of {MULTIPLE}, "
            f"{WIDEST} at most"
        )
    return next(size for size in SIZES if size * head_size <= MOST)


def block_size_of(config: DecoderConfig) -> int:
    """Raises HandlerLoadError."""
    if config.latent is None:
        for own in config.variants:
            block_size(own.head_dim)  # refuses by the number that the file has
        return min(block_size(own.cache_size("Ascend")) for own in config.variants)
    latent = config.latent
    sizes = {"kv_lora_rank": latent.rank, "qk_rope_head_dim": latent.turning, "qk_nope_head_dim": latent.still}
    if odd := next((name for name, size in sizes.items() if size % MULTIPLE), None):
        raise HandlerLoadError(
            f"config.json, {odd}: {sizes[odd]}: attention on Ascend NPUs needs a multiple of {MULTIPLE}"
        )
    if latent.width > WIDEST_LATENT or latent.query > WIDEST or latent.value > latent.query:
        raise HandlerLoadError(
            f"config.json: latent attention on Ascend NPUs needs kv_lora_rank + qk_rope_head_dim of {WIDEST_LATENT} "
            f"at most, qk_nope_head_dim + qk_rope_head_dim of {WIDEST} at most, and a v_head_dim that is not larger "
            f"than that; these are {latent.width}, {latent.query} and {latent.value}"
        )
    return SIZES[0]


class BlockTables:
    """The tables of all slots; block 0 does not belong to any text. A slot has no blocks until `assign` gives it
    some."""

    def __init__(self, slots: int, context: int, tokens: int, size: int, sinks: bool = False) -> None:
        """`tokens`: of all texts together; there is a block for each text at least. `sinks`: every row of the tables
        begins with block 0, whose places count as tokens before the text."""
        self.size, self.sinks, columns = size, sinks, -(-context // size)
        self.blocks = 1 + max(-(-tokens // size), columns, slots)
        self._tables = np.zeros((slots, columns), np.int32)

    def assign(self, slot: int, blocks: Sequence[int]) -> None:
        """Put the slot's positions in these blocks, in this order, from now on."""
        self._tables[slot, : len(blocks)] = blocks

    def places(self, slots: Sequence[int], starts: Sequence[int], counts: Sequence[int]) -> FlatArrays:
        """Places of `counts[i]` tokens from position `starts[i]` on of each of B slots."""
        first, more = np.array(starts, np.int32), np.array(counts, np.int32)
        lengths = first + more
        tables = self._tables[np.array(slots), : -(-int(lengths.max()) // self.size)]
        text = np.repeat(np.arange(len(more)), more)
        ends = more.cumsum()
        positions = (np.arange(len(text)) + np.repeat(first - (ends - more), more)).astype(np.int32)
        slot = tables[text, positions // self.size] * self.size + positions % self.size
        if self.sinks:
            tables, lengths = np.pad(tables, ((0, 0), (1, 0))), lengths + np.int32(self.size)
        return FlatArrays(positions, slot.astype(np.int32), np.ascontiguousarray(tables), lengths, more)

    def reach(self, columns: int) -> Array:
        """The position that each place of a row of so many columns has; of block 0 before a text the first has one that
        all see, the others one that nobody does."""
        if not self.sinks:
            return np.arange(columns * self.size)
        first = np.full(self.size, NEVER)
        first[0] = ALWAYS
        return np.append(first, np.arange((columns - 1) * self.size))

    def filled(self, slots: Sequence[int], starts: Sequence[int], size: int) -> FlatArrays:
        """Places of one token of each slot, filled up to `size` with tokens that keep nothing and read block 0; tables
        with all columns, so that steps of a size have the same shapes."""
        arrays, missing = self.places(slots, starts, [1] * len(slots)), size - len(slots)
        tables = np.zeros((size, self._tables.shape[1]), np.int32)
        tables[: len(slots)] = self._tables[list(slots)]
        fillers = {"positions": 0, "slots": NOWHERE, "lengths": 1, "q_lengths": 1}
        return extended(arrays, tables, {name: [it] * missing for name, it in fillers.items()})

    def paired(self, arrays: FlatArrays) -> FlatArrays:
        """The same and two tokens of one text more, that keep nothing and read block 0, as if that had one before them:
        where each text has one token, attention would ignore the mask; where each begins, rotation would expect the
        whole table."""
        more = {"positions": [1, 2], "slots": [NOWHERE] * 2, "q_lengths": [2]}
        more["lengths"] = [3 + self.size * self.sinks]
        return extended(arrays, np.pad(arrays.tables, ((0, 1), (0, 0))), more)


def extended(arrays: FlatArrays, tables: Array, more: Mapping[str, Sequence[int]]) -> FlatArrays:
    """The same with more numbers behind those of each array but the tables."""
    flat = {name: np.append(getattr(arrays, name), it).astype(np.int32) for name, it in more.items()}
    return FlatArrays(tables=tables, **flat)


def nowhere(arrays: FlatArrays) -> FlatArrays:
    """The same of a step that keeps nothing and reads block 0, for warming up."""
    return arrays._replace(slots=np.full_like(arrays.slots, NOWHERE), tables=np.zeros_like(arrays.tables))
