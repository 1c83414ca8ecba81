"""FairQueue in which places are given: the first comes first of each lane, and lanes take turns."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Container, Iterable
from itertools import accumulate
from typing import Generic, Protocol, TypeVar


class Waits(Protocol):
    number: int
    """Counts what came to its lane."""

    @property
    def lane(self) -> str: ...


W = TypeVar("W", bound=Waits)


class QueueLane(Generic[W]):
    __slots__ = ("came", "taken", "waiting")

    def __init__(self) -> None:
        self.waiting: OrderedDict[W, None] = OrderedDict()
        self.came = self.taken = 0
        """Numbers of the last one that came, and of the last one that was taken."""

    def add(self, one: W) -> None:
        self.came += 1
        one.number = self.came
        self.waiting[one] = None

    def take(self) -> W:
        one, _ = self.waiting.popitem(last=False)
        self.taken = one.number
        return one


class LaneSizes:
    """How many wait in each lane: counted once for all places that are asked for before the next change."""

    __slots__ = ("_sizes", "_sums")

    def __init__(self, sizes: Iterable[int]) -> None:
        self._sizes = sorted(sizes)
        self._sums = [0, *accumulate(self._sizes)]

    def taken(self, turns: int) -> int:
        """How many all lanes give in so many turns of each."""
        small = bisect_right(self._sizes, turns)
        return self._sums[small] + turns * (len(self._sizes) - small)


class FairQueue(Generic[W]):
    def __init__(self) -> None:
        self._lanes: OrderedDict[str, QueueLane[W]] = OrderedDict()
        """Lanes in which something waits, in the order of their turns."""
        self._sizes: LaneSizes | None = None
        """None where something came or went since they were counted."""

    def __len__(self) -> int:
        """How many lanes wait."""
        return len(self._lanes)

    def add(self, one: W) -> None:
        if (lane := self._lanes.get(one.lane)) is None:
            lane = self._lanes[one.lane] = QueueLane()
        lane.add(one)
        self._sizes = None

    def take(self, busy: Container[str] = ()) -> W | None:
        """The next one; None where none waits but in lanes that are busy."""
        name = next((name for name in self._lanes if name not in busy), None)
        if name is None:
            return None
        lane = self._lanes[name]
        one = lane.take()
        self._lanes.move_to_end(name)
        self._tidy(name, lane)
        return one

    def drop(self, one: W) -> None:
        """One that does not wait here is not an error."""
        lane = self._lanes.get(one.lane)
        if lane is not None and one in lane.waiting:
            del lane.waiting[one]
            self._tidy(one.lane, lane)

    def place(self, one: W) -> int:
        """How many are taken before it, at most."""
        own = self._lanes.get(one.lane)
        if own is None or one not in own.waiting:
            return 0
        before = one.number - own.taken - 1
        turns = before + 1
        if self._sizes is None:
            self._sizes = LaneSizes(len(lane.waiting) for lane in self._lanes.values())
        return before + self._sizes.taken(turns) - min(len(own.waiting), turns)

    def _tidy(self, name: str, lane: QueueLane[W]) -> None:
        self._sizes = None
        if not lane.waiting:
            del self._lanes[name]
