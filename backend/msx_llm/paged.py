"""The cache where a slot is a table of blocks anywhere in memory: sequences share the blocks of a common prefix."""

from collections import OrderedDict
from dataclasses import dataclass, field

from msx_llm.blocks import BlockPlacement, PrefixStats, blocks_for, chained
from msx_llm.step import AssignBlocks, Decode, Preparation, Step

SCRATCH = 0
"""A block that is never given to a sequence: for steps that test the runner."""


@dataclass(slots=True)
class BlockTable:
    """`names` are the names of the full blocks that were written."""

    tokens: list[int]
    blocks: list[int]
    names: list[bytes] = field(default_factory=list)
    root: bytes = b""


class PagedPool:
    """A `BlockPool` for runners that can `assign`. `blocks` includes one that stays unused.

    A full block is kept under its name when its last user leaves, until its room is needed: least recently used first.
    """

    def __init__(self, slots: int, blocks: int, block: int) -> None:
        self.block, self.total = block, blocks - 1
        self.prefixes = PrefixStats()
        self._slots = list(range(slots - 1, -1, -1))
        self._tables: dict[int, BlockTable] = {}
        self._users = [0] * blocks
        self._free = OrderedDict.fromkeys(range(1, blocks))
        self._named: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}

    @property
    def used(self) -> int:
        return self.total - len(self._free)

    def take(
        self, tokens: list[int], *, reuse: bool = True, like: int | None = None, spare: int = 0, root: bytes = b""
    ) -> BlockPlacement | None:
        """`like` is ignored: only full blocks are shared."""
        names = self._shared(tokens, root) if reuse else []
        shared = [self._named[name] for name in names]
        need = blocks_for(len(tokens), self.block) - len(shared)
        room = len(self._free) - sum(block in self._free for block in shared)
        if not self._slots or need + spare > room:
            return None
        for block in shared:
            self._use(block)
        slot = self._slots.pop()
        self._tables[slot] = BlockTable(tokens, [*shared, *(self._new() for _ in range(need))], names, root)
        self.prefixes.placed += len(tokens)
        self.prefixes.hit += len(shared) * self.block
        return BlockPlacement(slot, len(shared) * self.block, [self._assign(slot)])

    def grow(self, slot: int, length: int) -> list[Preparation] | None:
        table = self._tables[slot]
        more = blocks_for(length, self.block) - len(table.blocks)
        if more > len(self._free):
            return None
        table.blocks += [self._new() for _ in range(more)]
        return [self._assign(slot)] if more > 0 else []

    def begin(self, slot: int) -> None:
        """Keys and values of the tokens before stay what they are."""

    def wrote(self, slot: int, length: int) -> None:
        table, size = self._tables[slot], self.block
        while (len(table.names) + 1) * size <= length:
            number = len(table.names)
            before = table.names[-1] if table.names else table.root
            name = chained(before, table.tokens[number * size : (number + 1) * size])
            table.names.append(name)
            if name not in self._named:
                self._named[name], self._names[table.blocks[number]] = table.blocks[number], name

    def kept(self, slot: int, length: int) -> None:
        return None

    def free(self, slot: int) -> None:
        """The end of a prefix is dropped before its beginning."""
        for block in reversed(self._tables.pop(slot).blocks):
            self._leave(block)
        self._slots.append(slot)

    def forget(self) -> None:
        for block, name in list(self._names.items()):
            if not self._users[block]:
                del self._names[block], self._named[name]

    def scrap(self, slot: int) -> list[Step]:
        self.free(slot)
        return [AssignBlocks(slot, (SCRATCH,)), Decode((slot,), (0,), (0,))]

    def _shared(self, tokens: list[int], root: bytes) -> list[bytes]:
        """Names of the cached full blocks, contiguous from the beginning."""
        names: list[bytes] = []
        for start in range(0, len(tokens) - self.block, self.block):
            name = chained(names[-1] if names else root, tokens[start : start + self.block])
            if name not in self._named:
                break
            names.append(name)
        return names

    def _use(self, block: int) -> None:
        self._users[block] += 1
        self._free.pop(block, None)

    def _new(self) -> int:
        block, _ = self._free.popitem(last=False)
        if name := self._names.pop(block, None):
            del self._named[name]
        self._users[block] = 1
        return block

    def _leave(self, block: int) -> None:
        self._users[block] -= 1
        if self._users[block] == 0:
            self._free[block] = None
            if block not in self._names:
                self._free.move_to_end(block, last=False)

    def _assign(self, slot: int) -> AssignBlocks:
        return AssignBlocks(slot, tuple(self._tables[slot].blocks))
