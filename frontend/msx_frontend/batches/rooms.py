"""How much room a line's model has: lines start only where clients that wait are not held up."""

from __future__ import annotations

import math
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


WANTED = 1.0
"""Seconds for which an owner counts that has wanted a place: one that waits asks again much sooner."""


class LinePlace(NamedTuple):
    """The place of a line that runs."""

    model: str
    owner: str


class LineTurns:
    """Counts the lines that run, of all batches; owners whose lines wait share the places equally."""

    def __init__(self, room_of: RoomOf, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`share`: how much of the places lines may fill (batch_share)."""
        self._room_of, self._share, self._clock = room_of, share, clock
        self._running: Counter[LinePlace] = Counter()
        self._asked: dict[str, float] = {}
        """When a request of a client was seen last, by model."""
        self._wanted: dict[LinePlace, float] = {}
        """When a place was wanted last."""

    def take(self, names: Mapping[str, str], model: str, owner: str) -> LinePlace | None:
        """The place that the line has from now on; None while there is none for it. A model that has no worker ready
        gets one line at a time: it may be what starts a worker."""
        room, now = self._room_of(names, model), self._clock()
        place = LinePlace(room.model, owner)
        self._wanted[place] = now
        running, most = self._count(room.model), int(room.places * self._share)
        if room.is_wanted or room.taken > running:
            self._asked[room.model] = now
        if room.is_wanted or max(room.taken, running) >= max(most, 1):
            return None
        if most < 1 and room.places and now - self._asked.get(room.model, -QUIET) < QUIET:
            return None
        if self._running[place] >= math.ceil(max(most, 1) / self._owners(room.model, now)):
            return None
        self._running[place] += 1
        return place

    def give_back(self, place: LinePlace) -> None:
        self._running[place] -= 1
        if not self._running[place]:
            del self._running[place]

    def _count(self, model: str) -> int:
        return sum(count for place, count in self._running.items() if place.model == model)

    def _owners(self, model: str, now: float) -> int:
        """How many owners have, or want, places of a model."""
        self._wanted = {place: at for place, at in self._wanted.items() if now - at < WANTED}
        return len({place.owner for place in (*self._wanted, *self._running) if place.model == model})
