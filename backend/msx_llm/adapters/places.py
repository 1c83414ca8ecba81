"""The device's places for adapters: who is in which, and who has to make room."""

from collections import OrderedDict

from msx_llm.adapters.adapter import Adapter
from msx_llm.step import Adapt, Step


class AdapterPlaces:
    """Places count from 1; 0 is the model alone. An adapter keeps its place until another one needs it: of those
    without texts, the one that was used longest ago leaves."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._places: OrderedDict[Adapter, int] = OrderedDict()
        self._free = list(range(count, 0, -1))
        self._texts = dict.fromkeys(self._free, 0)
        self._unread: set[int] = set()
        """Places whose adapter is still to be read into them, which may fail."""

    @property
    def loaded(self) -> int:
        return len(self._places) - len(self._unread)

    def has_room(self, adapter: Adapter | None) -> bool:
        return adapter is None or adapter in self._places or bool(self._free) or self._idle() is not None

    def take(self, adapter: Adapter | None, slot: int) -> Adapt:
        """The step that gives a slot its adapter; only if it `has_room`."""
        if adapter is None:
            return Adapt(slot, 0)
        if adapter not in self._places:
            self._places[adapter] = self._free.pop() if self._free else self._evicted()
            self._unread.add(self._places[adapter])
        self._places.move_to_end(adapter)
        place = self._places[adapter]
        self._texts[place] += 1
        return Adapt(slot, place, adapter)

    def leave(self, adapter: Adapter | None) -> None:
        """A text has ended, or was preempted."""
        if adapter is not None:
            self._texts[self._places[adapter]] -= 1

    def reads(self, step: Step) -> bool:
        """The step reads an adapter. If that fails, it must not be a part of other texts' step."""
        return isinstance(step, Adapt) and step.place in self._unread

    def done(self, step: Step) -> None:
        """The step was executed."""
        if isinstance(step, Adapt) and step.adapter is not None and self._places.get(step.adapter) == step.place:
            self._unread.discard(step.place)

    def _idle(self) -> Adapter | None:
        return next((adapter for adapter, place in self._places.items() if not self._texts[place]), None)

    def _evicted(self) -> int:
        adapter = self._idle()
        assert adapter is not None
        return self._places.pop(adapter)
