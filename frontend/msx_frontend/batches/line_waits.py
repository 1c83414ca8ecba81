"""Batches whose lines wait for a place: owners take turns, and so do the batches of each."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

WANTED = 1.0
"""Seconds for which a batch counts that has wanted a place: one that waits asks again much sooner."""
REMEMBERED = 1000
"""Owners, and batches, of which is known when they had a place last."""


class LineOwner(NamedTuple):
    """Whose lines have places of a model."""

    model: str
    owner: str


class LineAsker(NamedTuple):
    """The batch that wants a place. `wake` is called when it may have one."""

    of: LineOwner
    batch: str
    wake: Callable[[], None]


class LineWaits:
    def __init__(self) -> None:
        self._waiting: dict[tuple[LineOwner, str], tuple[float, LineAsker]] = {}
        """The batches that wait, and when they wanted a place last."""
        self._turns: OrderedDict[tuple[LineOwner, str | None], int] = OrderedDict()
        """Numbers of the last places of owners, and of their batches."""
        self._number = 0

    def add(self, asker: LineAsker, now: float) -> None:
        self._waiting[asker.of, asker.batch] = now, asker

    def took(self, asker: LineAsker) -> None:
        """It has a place, and waits no more."""
        self._waiting.pop((asker.of, asker.batch), None)
        self._number += 1
        for key in ((asker.of, None), (asker.of, asker.batch)):
            self._turns[key] = self._number
            self._turns.move_to_end(key)
        while len(self._turns) > REMEMBERED:
            self._turns.popitem(last=False)

    def before(self, asker: LineAsker, running: Counter[LineOwner], now: float) -> int:
        """How many have their turn before it: owners with fewer lines, and those whose last place was longest ago."""
        own = self._rank(asker, running)
        return sum(self._rank(one, running) < own for one in self._of(asker.of.model, now))

    def wake(self, model: str, running: Counter[LineOwner], now: float) -> None:
        """Wake the one whose turn it is."""
        if waiting := self._of(model, now):
            min(waiting, key=lambda one: self._rank(one, running)).wake()

    def _of(self, model: str, now: float) -> list[LineAsker]:
        self._waiting = {key: one for key, one in self._waiting.items() if now - one[0] < WANTED}
        return [one for _, one in self._waiting.values() if one.of.model == model]

    def _rank(self, one: LineAsker, running: Counter[LineOwner]) -> tuple[int, int, int]:
        turns = self._turns
        return running[one.of], turns.get((one.of, None), 0), turns.get((one.of, one.batch), 0)
