"""The cache of keys and values in blocks: which tokens are where, how many fit, and which prefixes are cached."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np

from msx_llm.step import Preparation, Step

STRIDE = 64
"""Lists are compared by slices, which is faster than one by one."""


class BlockPlacement(NamedTuple):
    """`cached` tokens are in the cache, once the steps `before` have been executed. Where the text has `parts` tokens
    in the cache, its state is to be kept; 0: nowhere."""

    slot: int
    cached: int
    before: list[Preparation]
    parts: int = 0


@dataclass(slots=True)
class PrefixStats:
    """Tokens: how many were placed, and how many of them were cached already."""

    placed: int = 0
    hit: int = 0


class BlockPool(Protocol):
    """The cache of keys and values, in blocks of `block` tokens. It decides and keeps account; steps change the memory.

    Every method assumes that steps take effect in the order in which they were decided. A slot that was freed may be
    given away at once, even if a step on it has not been executed yet.
    """

    block: int
    total: int
    """The number of blocks."""
    prefixes: PrefixStats

    @property
    def used(self) -> int:
        """The number of blocks of sequences that have a slot."""

    def take(
        self, tokens: list[int], *, reuse: bool = True, like: int | None = None, spare: int = 0, root: bytes = b""
    ) -> BlockPlacement | None:
        """A slot with room for `tokens`, or None where there is none with `spare` blocks left over.

        Of `tokens`, which may grow, at least the last is not cached. `like`: a slot whose tokens begin in the same
        way, perhaps for less than a block. Only texts with the same `root` share.
        """

    def grow(self, slot: int, length: int) -> list[Preparation] | None:
        """Makes room for `length` tokens, after these steps. None: there is not enough room."""

    def begin(self, slot: int) -> None:
        """A step on the slot was decided: behind it, the slot holds more of its text."""

    def wrote(self, slot: int, length: int) -> None:
        """The first `length` tokens of the slot are in the cache: other sequences may share them."""

    def kept(self, slot: int, length: int) -> None:
        """The state behind `length` tokens is kept from now on; 0: the one that is kept now will soon be another one.
        Only where `parts` was given."""

    def free(self, slot: int) -> None:
        """Frees the slot. Its content is kept as long as there is room."""

    def forget(self) -> None:
        """Drop what is cached of finished texts: the memory no longer holds it."""

    def scrap(self, slot: int) -> list[Step]:
        """Frees a slot in which a step failed. -> Harmless steps that test whether the runner still works."""


def blocks_for(length: int, block: int) -> int:
    return -(-length // block)


def chained(before: bytes, tokens: Sequence[int]) -> bytes:
    """A name for a block of tokens that depends on the block and all tokens before it."""
    return blake2b(before + np.array(tokens, np.int32).tobytes(), digest_size=16).digest()


def common(one: list[int], other: list[int], stop: int) -> int:
    """The length of the common beginning, at most `stop`, which is within both."""
    for start in range(0, stop, STRIDE):
        end = min(start + STRIDE, stop)
        if one[start:end] != other[start:end]:
            return next(place for place in range(start, end) if one[place] != other[place])
    return stop
