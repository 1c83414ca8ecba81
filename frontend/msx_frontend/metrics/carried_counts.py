"""Counts that another part of the server keeps, and that begin at zero with it: a server before this one had more."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence


class CarriedCounts:
    """One counter with one label, or none. See `CountedFamily`."""

    def __init__(self, name: str, label: str, counts: Callable[[], Mapping[str, int]]) -> None:
        """`counts` are those of this server, by the label's value; by "" where `label` is empty, too."""
        self.name, self.shape = name, [label] if label else []
        self._own = counts
        self._before = Counter[str]()

    @property
    def all(self) -> Mapping[str, int]:
        """The counts with those of the servers before this one, in the order of its own."""
        own = self._own()
        return {value: own.get(value, 0) + self._before[value] for value in dict.fromkeys([*own, *self._before])}

    def counts(self) -> Iterator[tuple[tuple[str, ...], list[float]]]:
        return (((value,) if self.shape else (), [float(count)]) for value, count in self.all.items())

    def add_counts(self, labels: tuple[str, ...], counts: Sequence[float]) -> None:
        (value,), (count,) = labels or ("",), counts
        self._before[value] += int(count)
