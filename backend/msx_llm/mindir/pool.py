"""Places of texts whose caches are rows of tensors: each text has a whole row, and shares nothing."""

from msx_llm.blocks import BlockPlacement, PrefixStats
from msx_llm.step import Decode, Preparation, Step


class RowPool:
    """A `BlockPool` with a block a row."""

    def __init__(self, rows: int, context: int) -> None:
        self.block, self.total = context, rows
        self.prefixes = PrefixStats()
        self._free = list(range(rows - 1, -1, -1))

    @property
    def used(self) -> int:
        return self.total - len(self._free)

    def take(
        self, tokens: list[int], *, reuse: bool = True, like: int | None = None, spare: int = 0, root: bytes = b""
    ) -> BlockPlacement | None:
        """`spare` is for texts that grow, which have all that they need."""
        if not self._free:
            return None
        self.prefixes.placed += len(tokens)
        return BlockPlacement(self._free.pop(), 0, [])

    def grow(self, slot: int, length: int) -> list[Preparation] | None:
        return []

    def begin(self, slot: int) -> None:
        return None

    def wrote(self, slot: int, length: int) -> None:
        return None

    def kept(self, slot: int, length: int) -> None:
        return None

    def free(self, slot: int) -> None:
        self._free.append(slot)

    def forget(self) -> None:
        return None

    def scrap(self, slot: int) -> list[Step]:
        self.free(slot)
        return [Decode((slot,), (0,), (0,))]
