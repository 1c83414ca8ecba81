"""Counters and histograms of a server, as another frontend goes on with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from operator import le
from typing import Any, Protocol, runtime_checkable

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

Labels = tuple[str, ...]
LARGEST = 1 << 17
"""Bytes of one message, about, which a socket takes without waiting."""


class OfHandler(msgspec.Struct):
    """The metric of a series that a handler of this model reports."""

    model: str
    version: str
    kind: str
    unit: str
    help: str
    labels: list[str]


class HandedSeries(msgspec.Struct):
    """`counts`: the value of a counter; or the sum of a histogram, and the count of each bucket. `bounds` and `of` are
    a handler's own, and `shape` is that of one of the server's families."""

    name: str
    labels: list[str]
    counts: list[float]
    shape: list[str] = []
    bounds: list[float] = []
    of: OfHandler | None = None


@runtime_checkable
class CountedFamily(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> list[str]:
        """Names of its labels, and bounds of its buckets: what was counted in another shape does not fit."""

    def counts(self) -> Iterable[tuple[Labels, list[float]]]:
        """All series, and what they have counted."""

    def add_counts(self, labels: Labels, counts: Sequence[float]) -> None:
        """Raises ValueError for counts of other buckets, and where there are too many series."""


class CountedRegistry(CollectorRegistry):
    """Knows which of its families count."""

    def __init__(self) -> None:
        super().__init__(auto_describe=True)  # else the process is never among some names
        self.counted: dict[str, CountedFamily] = {}

    def register(self, collector: Collector) -> None:
        super().register(collector)
        if isinstance(collector, CountedFamily):
            self.counted[collector.name] = collector


class CountsSource(Protocol):
    def counted(self) -> Iterator[HandedSeries]:
        """All series that count, and what they have counted."""


class ToldCounts:
    """Counts that another frontend has not been told yet."""

    def __init__(self, source: CountsSource) -> None:
        self._source = source
        self._told: dict[tuple[str, Labels], list[float]] = {}
        self._rest = deque[HandedSeries]()
        """Series that did not fit into the last message."""

    def next(self) -> list[dict[str, Any]]:
        """Some of it, in JSON; ask again until there is none."""
        told, size = list[dict[str, Any]](), 0
        if not self._rest:
            self._rest.extend(more for one in self._source.counted() if (more := self._more(one)) is not None)
        while self._rest and size < LARGEST:
            one = self._rest.popleft()
            told.append(msgspec.to_builtins(one))
            size += len(msgspec.json.encode(one))
        return told

    def _more(self, now: HandedSeries) -> HandedSeries | None:
        """A series that has counted less than before is another one."""
        key = now.name, tuple(now.labels)
        before = self._told.get(key, [])
        same = len(before) == len(now.counts) and all(map(le, before, now.counts))
        more = [new - old for new, old in zip(now.counts, before, strict=True)] if same else now.counts
        if not any(more):
            return None
        self._told[key] = now.counts
        return msgspec.structs.replace(now, counts=more)


def received(series: list[dict[str, Any]]) -> list[HandedSeries]:
    """Raises ValueError."""
    return msgspec.convert(series, list[HandedSeries])
