"""The device's places for adapters: who is in which, and who has to make room."""

from __future__ import annotations

from collections import OrderedDict

from msx_backend.llm.adapters.adapter import Adapter
from msx_backend.llm.step import Adapt


class AdapterPlaces:
    """Places count from 1; 0 is the model alone. An adapter keeps its place until another one needs it: of those
    without texts, the one that was used longest ago leaves."""

    def __init__(self, count: int) -> None:
        self._places: OrderedDict[str, int] = OrderedDict()
        self._free = list(range(count, 0, -1))
        self._texts = dict.fromkeys(self._free, 0)

    @property
    def loaded(self) -> int:
        return len(self._places)

    def has_room(self, adapter: Adapter | None) -> bool:
        return adapter is None or adapter.name in self._places or bool(self._free) or self._idle() is not None

    def take(self, adapter: Adapter | None, slot: int) -> Adapt:
        """The step that gives a slot its adapter; only if it `has_room`."""
        if adapter is None:
            return Adapt(slot, 0)
        if adapter.name not in self._places:
            self._places[adapter.name] = self._free.pop() if self._free else self._evicted()
        self._places.move_to_end(adapter.name)
        place = self._places[adapter.name]
        self._texts[place] += 1
        return Adapt(slot, place, adapter.folder)

    def leave(self, adapter: Adapter | None) -> None:
        """A text has ended, or was preempted."""
        if adapter is not None:
            self._texts[self._places[adapter.name]] -= 1

    def _idle(self) -> str | None:
        return next((name for name, place in self._places.items() if not self._texts[place]), None)

    def _evicted(self) -> int:
        name = self._idle()
        assert name is not None
        return self._places.pop(name)
