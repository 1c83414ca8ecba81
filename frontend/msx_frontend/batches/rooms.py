"""How much room a model has: lines start only where clients that wait are not held up."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msx_frontend.batches.line_share import LineShare
from msx_frontend.batches.line_waits import WANTED, LineAsker, LineOwner, LineWaits


class ModelRoom(NamedTuple):
    """`model` is its own name; `places`: requests that its workers take at once; `taken`: those that they have, and
    that wait; `is_wanted`: requests of clients wait, `is_held`: for a place; `answered`: requests since the start."""

    model: str
    places: int
    taken: int
    is_wanted: bool
    is_held: bool
    answered: float


RoomOf = Callable[[Mapping[str, str], str], ModelRoom]
"""The room of the model that is meant by the names in a path, and by the name in a body."""


class LinePlace(NamedTuple):
    """The place of a line that runs since `began`."""

    of: LineOwner
    names: Mapping[str, str]
    asked: str
    """The model's name in its body."""
    began: float


class LineTurns:
    """Counts the lines that run, of all batches; owners whose lines wait share the places equally."""

    def __init__(self, room_of: RoomOf, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`share`: how much of the places lines may fill (batch_share)."""
        self._room_of, self._share, self._clock = room_of, share, clock
        self._running: Counter[LineOwner] = Counter()
        self._shares: dict[str, LineShare] = {}
        """How much of its lines' places they have now, by model."""
        self._wanted: dict[LineOwner, float] = {}
        """When a place was wanted last."""
        self._waits = LineWaits()

    def take(
        self,
        names: Mapping[str, str],
        model: str,
        owner: str,
        batch: str = "",
        wake: Callable[[], None] = lambda: None,
    ) -> LinePlace | None:
        """The place that the line has from now on; None while there is none for it: then `wake` is called when there
        may be one."""
        room, now = self._room_of(names, model), self._clock()
        asker = LineAsker(LineOwner(room.model, owner), batch, wake)
        self._wanted[asker.of] = now
        if not self._may_take(asker, room, now):
            self._waits.add(asker, now)
            return None
        self._waits.took(asker)
        self._running[asker.of] += 1
        return LinePlace(asker.of, names, model, now)

    def _may_take(self, asker: LineAsker, room: ModelRoom, now: float) -> bool:
        most = self._most(room, now)
        free = most - max(room.taken, self._count(room.model))
        if room.is_wanted or free <= 0:
            return False
        if self._running[asker.of] >= math.ceil(most / self._owners(room.model, now)):
            return False
        return self._waits.before(asker, self._running, now) < free

    def give_back(self, place: LinePlace) -> None:
        """The line has ended. Its share learns whether a client waits for its place."""
        room, now = self._room_of(place.names, place.asked), self._clock()
        self._running[place.of] -= 1
        if not self._running[place.of]:
            del self._running[place.of]
        if room.model == place.of.model:
            self._share_of(room).ended(now, now - place.began, self._places(room), is_held=room.is_held)
        self._waits.wake(place.of.model, self._running, now)

    @property
    def running(self) -> int:
        """Lines of all models."""
        return self._running.total()

    def _places(self, room: ModelRoom) -> int:
        """The places that lines may have. A model that has no worker ready gets one line at a time: it may be what
        starts a worker."""
        return max(int(room.places * self._share), 1)

    def _most(self, room: ModelRoom, now: float) -> int:
        """How many lines may run now."""
        places, share = self._places(room), self._share_of(room)
        clients = room.taken - self._count(room.model)
        is_crowded = room.is_wanted or clients >= room.places
        share.look(now, room.answered, places, is_asked=is_crowded or clients > 0, is_crowded=is_crowded)
        return places if self._share == 1 or not room.places else share.of(places)

    def _share_of(self, room: ModelRoom) -> LineShare:
        return self._shares.setdefault(room.model, LineShare())

    def _count(self, model: str) -> int:
        return sum(count for of, count in self._running.items() if of.model == model)

    def _owners(self, model: str, now: float) -> int:
        """How many owners have, or want, places of a model."""
        self._wanted = {of: at for of, at in self._wanted.items() if now - at < WANTED}
        return len({of.owner for of in (*self._wanted, *self._running) if of.model == model})
