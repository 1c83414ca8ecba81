"""The owners of series: a series is removed with its last owner."""

from collections import defaultdict
from collections.abc import Iterator

from msx_frontend.metrics.family import Series
from msx_frontend.metrics.source import Owner, SampleSource


class SeriesOwners:
    def __init__(self) -> None:
        self._series: defaultdict[Owner, set[Series]] = defaultdict(set)
        self._of: dict[Series, set[Owner]] = {}

    def add(self, series: Series, owner: Owner) -> None:
        owned = self._series[owner]
        if series not in owned:
            owned.add(series)
            self._of.setdefault(series, set()).add(owner)

    def __iter__(self) -> Iterator[tuple[Series, SampleSource]]:
        """Each series, with one of the versions that have it."""
        for series, owners in self._of.items():
            one = next(iter(owners))
            yield series, one if isinstance(one, SampleSource) else one[0]

    def forget(self, owner: Owner) -> list[Series]:
        """Remove an owner; returns the series that have no owner left."""
        owned = self._series.pop(owner, set())
        for series in owned:
            self._of[series].discard(owner)
        left = [series for series in owned if not self._of[series]]
        for series in left:
            del self._of[series]
        return left
