"""What a worker has computed, as far as the server knows: its engine's cache may have forgotten some of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

MOST_BLOCKS = 16_384
"""Of a worker: about 2 MiB."""


class Memory:
    """The blocks that were asked for last. The first blocks of a prompt are forgotten after the later ones."""

    def __init__(self, most: int = MOST_BLOCKS) -> None:
        self._most = most
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self.asked = 0
        """When the worker was chosen last, in requests of all workers."""

    def __len__(self) -> int:
        return len(self._blocks)

    def known(self, blocks: Sequence[int]) -> int:
        """How many of these are there, from the first on."""
        return next((count for count, block in enumerate(blocks) if block not in self._blocks), len(blocks))

    def keep(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
