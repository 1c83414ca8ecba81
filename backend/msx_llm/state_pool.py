"""The cache of texts that have states: a slot has the last one of its text, and may have kept one of its beginning."""

from msx_llm.blocks import BlockPlacement, common
from msx_llm.slots import SlotPool
from msx_llm.step import CopyPositions, Step


class StatePool(SlotPool):
    """A text goes on behind another one only where a state of that one is: at its end, while no step is on its way that
    moves it, or where one was kept.

    States are kept where texts were seen to part: the second text with a beginning is computed up to there, keeps the
    state, and goes on; the third one finds it.
    """

    def __init__(self, slots: int, tokens: int, block: int) -> None:
        super().__init__(slots, tokens, block)
        self._ends, self._kept = [0] * slots, [0] * slots
        """How many tokens are in the last state of each slot, and in the kept one; 0: none are, or nobody knows."""

    def take(
        self, tokens: list[int], *, reuse: bool = True, like: int | None = None, spare: int = 0, root: bytes = b""
    ) -> BlockPlacement | None:
        parts = self._parts(tokens, root) if reuse else 0
        placement = super().take(tokens, reuse=reuse, like=like, spare=spare, root=root)
        if placement is None:
            return None
        slot, cached, before, _ = placement
        if before or not cached:
            self._kept[slot] = cached
        elif self._ends[slot] != cached:
            before = [CopyPositions(slot, slot, cached)]
        self._ends[slot], self._kept[slot] = cached, self._kept[slot] if self._kept[slot] <= cached else 0
        return BlockPlacement(slot, cached, before, parts if parts - cached >= self.block else 0)

    def begin(self, slot: int) -> None:
        self._ends[slot] = 0

    def wrote(self, slot: int, length: int) -> None:
        super().wrote(slot, length)
        self._ends[slot] = length

    def kept(self, slot: int, length: int) -> None:
        self._kept[slot] = length

    def forget(self) -> None:
        for slot in self._retired:
            self._ends[slot] = self._kept[slot] = 0
        super().forget()

    def scrap(self, slot: int) -> list[Step]:
        self._ends[slot] = self._kept[slot] = 0
        return super().scrap(slot)

    def _best(self, tokens: list[int], like: int | None, root: bytes) -> tuple[int | None, int]:
        states = [(slot, length) for lengths in (self._ends, self._kept) for slot, length in enumerate(lengths)]
        found = (state for state in states if 0 < state[1] == self._common(*state, tokens, root))
        return max(found, key=self._fitness, default=(None, 0))

    def _parts(self, tokens: list[int], root: bytes) -> int:
        """How long the longest beginning is that another text has, too."""
        return max(self._common(slot, held.length, tokens, root) for slot, held in enumerate(self._held))

    def _common(self, slot: int, length: int, tokens: list[int], root: bytes) -> int:
        held = self._held[slot]
        most = min(length, held.length, len(tokens) - 1)
        return common(held.tokens, tokens, most) if held.root == root else 0
