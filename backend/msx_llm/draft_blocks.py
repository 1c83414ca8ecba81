"""The blocks of a small model's texts, where its cache is paged."""

from msx_llm.blocks import blocks_for
from msx_llm.step_runner import PagedRunner


class DraftBlocks:
    """Each slot has blocks of its own, as many as its text has needed. Block 0 does not belong to any text."""

    def __init__(self, runner: PagedRunner) -> None:
        self._runner, self._free = runner, list(range(1, runner.blocks))
        self._own: dict[int, list[int]] = {}

    def reach(self, slot: int, length: int) -> bool:
        """Gives the slot room for `length` tokens. False: there are too few blocks."""
        own = self._own.setdefault(slot, [])
        more = blocks_for(length, self._runner.block) - len(own)
        if more > len(self._free):
            return False
        if more > 0:
            own += [self._free.pop() for _ in range(more)]
            self._runner.assign(slot, own)
        return True

    def leave(self, slot: int) -> None:
        """The slot holds nothing any more."""
        self._free += self._own.pop(slot, [])
