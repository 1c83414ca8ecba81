"""The shapes of the graphs of a runner over slots, and those that are compiled already."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

SMALL = 4
"""A prefill of less than a context's 1 / `SMALL` reads little of it."""


class StepShape(NamedTuple):
    """`size`: texts of a decoding step, or tokens of a prefill; `context`: the positions that it attends to."""

    kind: str
    size: int
    context: int
    every: bool = False
    """A prefill with the logits of all tokens."""
    texts: int = 1
    """Prompts of a prefill."""

    @property
    def name(self) -> str:
        size = self.size if self.texts == 1 else f"{self.texts} × {self.size}"
        return f"{self.kind} {size} × {self.context}{', all logits' if self.every else ''}"


class StepShapes:
    """Each step gets the smallest shape that holds it, among those that are compiled. `extent`: the positions that are
    read where so many are wanted; `groups`: some prefills have several prompts."""

    def __init__(
        self,
        slots: Sequence[int],
        contexts: Sequence[int],
        prefills: Sequence[int],
        extent: Callable[[int], int],
        groups: bool = True,
    ) -> None:
        self._slots, self._contexts, self._prefills = slots, contexts, prefills
        self._extent, self._of_groups = extent, groups
        self._later: list[StepShape] = []

    @property
    def all(self) -> list[StepShape]:
        return [*self._decodes(), *self._all_prefills(), *self._groups()]

    @property
    def later(self) -> Sequence[StepShape]:
        """The shapes that are not compiled yet, in the order in which they will be."""
        return self._later

    def leave(self) -> list[StepShape]:
        """Leave all shapes for later but those that hold every step, and a step of one text: these are returned."""
        context = self._contexts[-1]
        decodes = [StepShape("decode", size, context) for size in dict.fromkeys((self._slots[-1], self._slots[0]))]
        prefills = [StepShape("prefill", self._prefills[-1], context, every) for every in (False, True)]
        first = [*decodes, *prefills]
        self._later = [
            shape for shape in [*self._all_prefills(), *self._decodes(), *self._groups()] if shape not in first
        ]
        return first

    def compiled(self, shape: StepShape) -> None:
        self._later = [other for other in self._later if other != shape]

    def decode(self, texts: int, length: int) -> StepShape:
        """Raises ValueError if no shape holds it."""
        slots, contexts = _from(self._slots, texts, "slots"), _from(self._contexts, length, "positions")
        return self._first([StepShape("decode", size, context) for size in slots for context in contexts])

    def prefill(self, tokens: int, length: int, every: bool) -> StepShape:
        """Raises ValueError if no shape holds it."""
        sizes = _from(self._prefills, tokens, "tokens of a prefill")
        return self._first(
            [
                StepShape("prefill", size, context, every)
                for size in sizes
                for context in _from(self._prefill_contexts(size), length, "positions")
            ]
        )

    def prefills(self, texts: int, tokens: int, length: int) -> StepShape | None:
        """The shape for so many prompts, the longest of which has `tokens`; None if no compiled one holds them."""
        shapes = (
            shape
            for shape in self._groups()
            if shape.texts >= texts and shape.size >= tokens and shape.context >= length and self._is_compiled(shape)
        )
        return min(shapes, key=lambda shape: (shape.texts * shape.size, shape.context), default=None)

    def _first(self, shapes: list[StepShape]) -> StepShape:
        return next((shape for shape in shapes if self._is_compiled(shape)), shapes[0])

    def _is_compiled(self, shape: StepShape) -> bool:
        """Logits of all tokens have a graph of their own, behind that of the other layers: it is compiled with the last
        context."""
        whole = shape._replace(context=self._contexts[-1])
        return shape._replace(every=False) not in self._later and not (shape.every and whole in self._later)

    def _decodes(self) -> list[StepShape]:
        return [StepShape("decode", size, context) for size in self._slots for context in self._contexts]

    def _all_prefills(self) -> list[StepShape]:
        return [
            StepShape("prefill", size, context, every)
            for size in self._prefills
            for context in self._prefill_contexts(size)
            for every in ((False, True) if context == self._contexts[-1] else (False,))
        ]

    def _groups(self) -> list[StepShape]:
        """Several prompts at once, no more tokens than those of the largest prefill, in their first context."""
        return [
            StepShape("prefill", size, self._first_context(size), texts=texts)
            for size in self._prefills
            for texts in self._slots
            if self._of_groups and texts > 1 and texts * size <= self._prefills[-1]
        ]

    def _first_context(self, count: int) -> int:
        return next((context for context in self._contexts if context >= count), self._contexts[-1])

    def _prefill_contexts(self, count: int) -> list[int]:
        """Contexts that hold a whole bucket: of one that is small beside them the first and the last, because each
        graph takes memory; for prompts of one chunk and the chunks of longer ones, which have the largest bucket, its
        own length, and some more between."""
        first, last = self._first_context(count), self._contexts[-1]
        if count * SMALL < first:
            return sorted({first, last})
        longer = {context for context in self._contexts if context >= first}
        if count == self._prefills[-1]:
            own = min(self._extent(count), last)
            longer |= {own, *(self._extent(context) for context in contexts_between(own, last))}
        return sorted(longer)


def contexts_between(first: int, last: int) -> list[int]:
    """Lengths between, two at most, each the same power of two times the one before; none that would read hardly less
    than the last."""
    factor = 2
    while first * factor**3 < last:
        factor *= 2
    return [context for context in (first * factor, first * factor**2) if context * 3 <= last * 2]


def _from(sizes: Sequence[int], wanted: int, what: str) -> Sequence[int]:
    """The sizes that hold so many."""
    index = bisect_left(sizes, wanted)
    if index == len(sizes) or wanted < 1:
        raise ValueError(f"{wanted} {what}: there must be 1 to {sizes[-1]}")
    return sizes[index:]
