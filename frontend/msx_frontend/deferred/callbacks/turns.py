"""Callbacks that wait for a place: askers take turns, and so do the hosts of each."""

from __future__ import annotations

from collections import OrderedDict

from msx_frontend.deferred.callbacks.lanes import BusyLanes, Waiting
from msx_frontend.deferred.fair_queue import FairQueue


class CallbackTurns:
    """An asker with many hosts has the turns of one with a single host."""

    def __init__(self) -> None:
        self._askers: OrderedDict[str, FairQueue[Waiting]] = OrderedDict()
        """Askers whose callbacks wait, in the order of their turns."""

    def add(self, one: Waiting) -> None:
        self._askers.setdefault(one.asker, FairQueue()).add(one)

    def take(self, busy: BusyLanes) -> Waiting | None:
        """The next one; None where none waits that may be sent beside those of `busy`."""
        for asker, queue in self._askers.items():
            if not busy.is_full(asker) and (one := queue.take(busy)) is not None:
                self._askers.move_to_end(asker)
                self._tidy(asker, queue)
                return one
        return None

    def drop(self, one: Waiting) -> None:
        """One that does not wait here is not an error."""
        if (queue := self._askers.get(one.asker)) is not None:
            queue.drop(one)
            self._tidy(one.asker, queue)

    def _tidy(self, asker: str, queue: FairQueue[Waiting]) -> None:
        if not queue:
            del self._askers[asker]
