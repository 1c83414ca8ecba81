"""How much room a line's model has: lines start only where clients that wait are not held up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple


class ModelRoom(NamedTuple):
    """`model` is its own name; `places`: requests that its workers take at once; `taken`: those that they have, and
    that wait; `is_wanted`: clients wait for a place."""

    model: str
    places: int
    taken: int
    is_wanted: bool


RoomOf = Callable[[Mapping[str, str], str], ModelRoom]
"""The room of the model that is meant by the names in a path, and by the name in a body."""


QUIET = 0.1
"""Seconds without a request of a client, after which the only place of a model is a line's: a client that asks again
as soon as it is answered would wait for a line each time."""


class LineTurns:
    """Counts the lines that run, of all batches."""

    def __init__(self, room_of: RoomOf, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`share`: how much of the places lines may fill (batch_share)."""
        self._room_of, self._share, self._clock = room_of, share, clock
        self._running: Counter[str] = Counter()
        self._asked: dict[str, float] = {}
        """When a request of a client was seen last, by model."""

    def take(self, names: Mapping[str, str], model: str) -> str | None:
        """The model whose place the line has from now on; None while it has none for lines. One that has no worker
        ready gets one line at a time: it may be what starts a worker."""
        room = self._room_of(names, model)
        running, most = self._running[room.model], int(room.places * self._share)
        if room.is_wanted or room.taken > running:
            self._asked[room.model] = self._clock()
        if room.is_wanted or max(room.taken, running) >= max(most, 1):
            return None
        if most < 1 and room.places and self._clock() - self._asked.get(room.model, -QUIET) < QUIET:
            return None
        self._running[room.model] += 1
        return room.model

    def give_back(self, model: str) -> None:
        self._running[model] -= 1
        if not self._running[model]:
            del self._running[model]
