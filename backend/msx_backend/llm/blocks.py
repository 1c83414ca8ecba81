"""Which tokens' keys and values are where: the budget, and prefixes that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

from msx_backend.llm.step import Step

STRIDE = 64
"""Lists are compared by slices, which is faster than one by one."""


class BlockPlacement(NamedTuple):
    """`cached` tokens are there, once the steps `before` have been executed."""

    slot: int
    cached: int
    before: list[Step]


@dataclass(slots=True)
class PrefixStats:
    """In tokens: of those placed, so many were there already."""

    placed: int = 0
    hit: int = 0


class BlockPool(Protocol):
    """The cache of keys and values, in blocks of `block` tokens. It decides and remembers; steps do.

    Every method assumes that steps take effect in the order in which they were decided. A slot that was freed may be
    given away at once, though a step on it is still on its way.
    """

    block: int
    total: int
    """Blocks."""
    prefixes: PrefixStats

    @property
    def used(self) -> int:
        """Blocks of the sequences that have a slot."""

    def take(
        self, tokens: list[int], *, reuse: bool = True, like: int | None = None, spare: int = 0
    ) -> BlockPlacement | None:
        """A slot with room for `tokens`, or None where there is none with `spare` blocks left over.

        Of `tokens`, which may grow, at least the last is not cached. `like`: a slot whose tokens begin in the same
        way, perhaps for less than a block.
        """

    def grow(self, slot: int, length: int) -> list[Step] | None:
        """Room for `length` tokens, after these steps. None: there is none."""

    def wrote(self, slot: int, length: int) -> None:
        """The first `length` tokens of the slot are in the cache: others may share them."""

    def free(self, slot: int) -> None:
        """What was written stays as long as there is room."""

    def scrap(self, slot: int) -> list[Step]:
        """Frees a slot in which a step failed. -> Steps that find out whether the runner works, and harm nothing."""


def blocks_for(length: int, block: int) -> int:
    return -(-length // block)


def chained(before: bytes, tokens: Sequence[int]) -> bytes:
    """Names a block of tokens by itself and all that comes before it."""
    return blake2b(before + np.array(tokens, np.int32).tobytes(), digest_size=16).digest()


def common(one: list[int], other: list[int], stop: int) -> int:
    """How many tokens they begin with alike, at most `stop`, which is within both."""
    for start in range(0, stop, STRIDE):
        end = min(start + STRIDE, stop)
        if one[start:end] != other[start:end]:
            return next(place for place in range(start, end) if one[place] != other[place])
    return stop
