"""The cache where each slot is contiguous memory: a prefix is reused in place, or copied from another slot."""

from collections import OrderedDict
from dataclasses import dataclass, field

from msx_llm.blocks import BlockPlacement, PrefixStats, blocks_for, chained, common
from msx_llm.step import CopyPositions, Decode, Preparation, Step


@dataclass(slots=True)
class SlotContent:
    """The content of a slot: the first `length` of `tokens`. `names` are the names of its full blocks."""

    tokens: list[int] = field(default_factory=list)
    length: int = 0
    names: list[bytes] = field(default_factory=list)
    blocks: int = 0
    """Reserved blocks; 0 for an unused slot."""
    root: bytes = b""


class SlotPool:
    """A `BlockPool`. Each slot is as long as the longest text; `tokens` may be less than all slots together.

    A slot that is freed retires with its content. It is reused in place for a text that takes up at least half of
    it, such as the next turn of a chat; else the prefix is copied into an empty slot, or the one retired longest ago.
    """

    def __init__(self, slots: int, tokens: int, block: int) -> None:
        self.block, self.total, self.used = block, blocks_for(tokens, block), 0
        self.prefixes = PrefixStats()
        self._held = [SlotContent() for _ in range(slots)]
        self._empty = list(range(slots - 1, -1, -1))
        self._retired: OrderedDict[int, None] = OrderedDict()
        self._holders: dict[bytes, dict[int, None]] = {}

    def take(
        self, tokens: list[int], *, reuse: bool = True, like: int | None = None, spare: int = 0, root: bytes = b""
    ) -> BlockPlacement | None:
        need = blocks_for(len(tokens), self.block)
        if self.used + need + spare > self.total or not (self._empty or self._retired):
            return None
        source, cached = self._best(tokens, like, root) if reuse else (None, 0)
        slot = self._choose(source, cached)
        self.prefixes.placed += len(tokens)
        self.prefixes.hit += cached
        self._occupy(slot, tokens, cached if slot == source else 0, need)
        self._held[slot].root = root
        if source is None or source == slot:
            return BlockPlacement(slot, cached, [])
        return BlockPlacement(slot, cached, [CopyPositions(source, slot, cached)])

    def grow(self, slot: int, length: int) -> list[Preparation] | None:
        more = blocks_for(length, self.block) - self._held[slot].blocks
        if more <= 0:
            return []
        if self.used + more > self.total:
            return None
        self._held[slot].blocks += more
        self.used += more
        return []

    def begin(self, slot: int) -> None:
        """Keys and values of the tokens before stay what they are."""

    def wrote(self, slot: int, length: int) -> None:
        held, size = self._held[slot], self.block
        held.length = length
        while (len(held.names) + 1) * size <= length:
            start = len(held.names) * size
            name = chained(held.names[-1] if held.names else held.root, held.tokens[start : start + size])
            held.names.append(name)
            self._holders.setdefault(name, {})[slot] = None

    def kept(self, slot: int, length: int) -> None:
        return None

    def free(self, slot: int) -> None:
        held = self._held[slot]
        self.used -= held.blocks
        held.blocks, held.tokens = 0, held.tokens[: held.length]
        if held.length:
            self._retired[slot] = None
        else:
            self._empty.append(slot)

    def forget(self) -> None:
        for slot in self._retired:
            self._forget(slot, 0)
            self._held[slot] = SlotContent()
            self._empty.append(slot)
        self._retired.clear()

    def scrap(self, slot: int) -> list[Step]:
        self._forget(slot, 0)
        self._held[slot].length = 0
        self.free(slot)
        return [Decode((slot,), (0,), (0,))]

    def _best(self, tokens: list[int], like: int | None, root: bytes) -> tuple[int | None, int]:
        """The slot that holds the longest beginning of `tokens`, and its length."""
        found = [self._by_blocks(tokens, root), self._by_tokens(tokens, like, root)]
        slot, cached = max(found, key=lambda it: it[1])
        return (slot, cached) if cached else (None, 0)

    def _by_blocks(self, tokens: list[int], root: bytes) -> tuple[int | None, int]:
        holders, name = None, root
        for start in range(0, len(tokens) - self.block, self.block):
            name = chained(name, tokens[start : start + self.block])
            if name not in self._holders:
                break
            holders = self._holders[name]
        return max(
            (self._by_tokens(tokens, slot, root) for slot in holders or ()), key=self._fitness, default=(None, 0)
        )

    def _by_tokens(self, tokens: list[int], slot: int | None, root: bytes) -> tuple[int | None, int]:
        if slot is None or self._held[slot].root != root:
            return None, 0
        held = self._held[slot]
        return slot, common(held.tokens, tokens, min(held.length, len(tokens) - 1))

    def _fitness(self, found: tuple[int | None, int]) -> tuple[int, bool]:
        """Longer is better; among equals, one that need not be copied."""
        return found[1], found[0] in self._retired

    def _choose(self, source: int | None, cached: int) -> int:
        if source is not None and source in self._retired:
            self._retired.move_to_end(source)
            if cached * 2 >= self._held[source].length:
                return source
        return self._empty[-1] if self._empty else next(iter(self._retired))

    def _occupy(self, slot: int, tokens: list[int], kept: int, blocks: int) -> None:
        held = self._held[slot]
        self._forget(slot, kept // self.block)
        held.tokens, held.length, held.blocks = tokens, kept, blocks
        self.used += blocks
        if slot in self._retired:
            del self._retired[slot]
        else:
            self._empty.remove(slot)

    def _forget(self, slot: int, kept: int) -> None:
        """Forgets all full blocks but the first `kept`."""
        names = self._held[slot].names
        for name in names[kept:]:
            del self._holders[name][slot]
            if not self._holders[name]:
                del self._holders[name]
        del names[kept:]
