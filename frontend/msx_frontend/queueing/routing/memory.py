"""Prompts that a worker has computed, as far as the server knows: its engine's cache may have forgotten some."""

from collections import OrderedDict
from collections.abc import Sequence

MOST_BLOCKS = 16_384
"""Most blocks of a worker: about 3 MiB."""
COMMON = 4
"""A beginning is common when prompts go on in so many ways behind it: the same instructions of many conversations."""


class Memory:
    """The blocks that were asked for last. The first blocks of a prompt are forgotten after the later ones."""

    def __init__(self, most: int = MOST_BLOCKS) -> None:
        self._most = most
        self._blocks: OrderedDict[int, int] = OrderedDict()
        """Blocks, with the number of those that came next."""
        self.asked = 0
        """When the worker was chosen last, in requests of all workers."""

    def __len__(self) -> int:
        return len(self._blocks)

    def known(self, blocks: Sequence[int]) -> int:
        """How many of these are there, from the first on."""
        return next((count for count, block in enumerate(blocks) if block not in self._blocks), len(blocks))

    def is_common(self, blocks: Sequence[int]) -> bool:
        """Whether what is known of them is common, and they go on behind it: they are no turn of something known."""
        known = self.known(blocks)
        return 0 < known < len(blocks) and self._blocks[blocks[known - 1]] >= COMMON

    def keep(self, blocks: Sequence[int]) -> None:
        new = False
        for block in reversed(blocks):
            nexts = self._blocks.get(block)
            self._blocks[block] = (nexts or 0) + new
            self._blocks.move_to_end(block)
            new = nexts is None
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
