"""The texts that wait for a slot, and whose turn it is."""

from __future__ import annotations

from bisect import insort
from collections import Counter, OrderedDict
from collections.abc import Iterator
from operator import attrgetter

from msx_core.turn_ring import TurnRing
from msx_llm.sequence import TokenSequence

OVERDUE = -(1 << 64)
"""The priority of a text that has waited enough: before all that requests may name."""

_order = attrgetter("order")


class WaitingTexts:
    """Texts of a better priority come first. Of one priority, keys take turns, of one key its requests, and of one
    request its texts go in their order. Those that are overdue go in the order of arrival."""

    def __init__(self) -> None:
        self._classes: dict[int, _KeysInTurn] = {}
        self._overdue: list[TokenSequence] = []

    def __len__(self) -> int:
        return len(self._overdue) + sum(map(len, self._classes.values()))

    def __iter__(self) -> Iterator[TokenSequence]:
        yield from self._overdue
        for priority in sorted(self._classes):
            yield from self._classes[priority]

    @property
    def first(self) -> TokenSequence | None:
        """The text whose turn it is."""
        if self._overdue:
            return self._overdue[0]
        return self._classes[min(self._classes)].first if self._classes else None

    def add(self, text: TokenSequence) -> None:
        if text.priority == OVERDUE:
            insort(self._overdue, text, key=_order)
        else:
            self._class_of(text).add(text)

    def put_back(self, text: TokenSequence) -> None:
        """It had to leave its slot, and is the next one of its priority."""
        if text.priority == OVERDUE:
            insort(self._overdue, text, key=_order)
        else:
            self._class_of(text).put_back(text)

    def take(self) -> TokenSequence:
        """The first one, whose turn ends. There must be one."""
        if self._overdue:
            return self._overdue.pop(0)
        priority = min(self._classes)
        text = self._classes[priority].take()
        self._drop_empty(priority)
        return text

    def remove(self, text: TokenSequence) -> None:
        if text.priority == OVERDUE:
            self._overdue.remove(text)
        else:
            self._classes[text.priority].remove(text)
            self._drop_empty(text.priority)

    def worse_than(self, priority: int) -> list[TokenSequence]:
        return [text for worse, texts in self._classes.items() if worse > priority for text in texts]

    def _class_of(self, text: TokenSequence) -> _KeysInTurn:
        return self._classes.setdefault(text.priority, _KeysInTurn())

    def _drop_empty(self, priority: int) -> None:
        if not self._classes[priority]:
            del self._classes[priority]


class _KeysInTurn:
    """The texts of one priority: a ring of keys, each a ring of requests."""

    def __init__(self) -> None:
        self._keys: OrderedDict[str, TurnRing[int, TokenSequence]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def __iter__(self) -> Iterator[TokenSequence]:
        for ring in self._keys.values():
            yield from ring

    @property
    def first(self) -> TokenSequence:
        return next(next(iter(self._keys.values())).heads)

    def add(self, text: TokenSequence) -> None:
        self._ring_of(text).put(text.owner.request, text)

    def put_back(self, text: TokenSequence) -> None:
        self._ring_of(text).put_back(text.owner.request, text)
        self._keys.move_to_end(text.owner.key, last=False)

    def take(self) -> TokenSequence:
        key, ring = next(iter(self._keys.items()))
        text = ring.take()
        self._keys.move_to_end(key)
        if not ring:
            del self._keys[key]
        return text

    def remove(self, text: TokenSequence) -> None:
        ring = self._keys[text.owner.key]
        ring.remove(text.owner.request, text)
        if not ring:
            del self._keys[text.owner.key]

    def _ring_of(self, text: TokenSequence) -> TurnRing[int, TokenSequence]:
        return self._keys.setdefault(text.owner.key, TurnRing())


def last_in_turn(running: list[TokenSequence]) -> TokenSequence:
    """The text that leaves where there is too little memory: of the worst priority, of the request that has most texts
    here, the last one. The first in order never is, unless it is alone."""
    places, ranks = Counter[int](), dict[TokenSequence, int]()
    for text in sorted(running, key=_order):
        ranks[text] = places[text.owner.request]
        places[text.owner.request] += 1
    return max((text for text in running if not text.in_flight), key=lambda it: (it.priority, ranks[it], it.order))
