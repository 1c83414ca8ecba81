"""How much room a line's model has: lines start only where clients that wait are not held up."""

from __future__ import annotations

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


class LineTurns:
    """Counts the lines that run, of all batches."""

    def __init__(self, room_of: RoomOf, share: float) -> None:
        """`share`: how much of the places lines may fill (batch_share)."""
        self._room_of, self._share = room_of, share
        self._running: Counter[str] = Counter()

    def take(self, names: Mapping[str, str], model: str) -> str | None:
        """The model whose place the line has from now on; None while it has none for lines. One that has no worker
        ready gets one line at a time: it may be what starts a worker."""
        room = self._room_of(names, model)
        most = max(int(room.places * self._share), 1)
        if room.is_wanted or max(room.taken, self._running[room.model]) >= most:
            return None
        self._running[room.model] += 1
        return room.model

    def give_back(self, model: str) -> None:
        self._running[model] -= 1
        if not self._running[model]:
            del self._running[model]
