"""Labelled counters and histograms as plain numbers, which only the loop's thread changes: cheaper than a lock."""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import inf
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString


class Counter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        self.value += amount


class Histogram:
    """`counts` has a count for each bucket alone; the last one is for values above all bounds."""

    __slots__ = ("bounds", "counts", "exemplars", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0
        self.exemplars: dict[int, Exemplar] = {}
        """The newest of each bucket."""

    def exemplify(self, value: float, trace: str, when: float) -> None:
        """A value that is observed, and the trace of its request (in hexadecimal) at the epoch's second `when`."""
        self.exemplars[bisect_left(self.bounds, value)] = Exemplar({"trace_id": trace}, value, when)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_all(self, values: Sequence[float]) -> None:
        """The same as `observe` for each value, but cheaper."""
        ordered, counted = sorted(values), 0
        for bucket, bound in enumerate(self.bounds):
            if counted == len(ordered):
                break
            upto = bisect_right(ordered, bound)
            self.counts[bucket] += upto - counted
            counted = upto
        self.counts[-1] += len(ordered) - counted
        self.sum += sum(values)

    @property
    def all_counts(self) -> list[float]:
        """Sum and buckets, as another server goes on with them by `add`."""
        return [self.sum, *self.counts]

    def add(self, counts: Sequence[float]) -> None:
        """Raises ValueError for counts of other buckets."""
        total, *buckets = counts
        self.counts = [old + int(more) for old, more in zip(self.counts, buckets, strict=True)]
        self.sum += total

    def merge(self, bounds: Sequence[float], counts: Sequence[int], total: float) -> None:
        """Add observations that were counted by other `bounds`: by each count's upper bound. `total` is their sum."""
        for bound, count in zip((*bounds, inf), counts, strict=True):
            self.counts[bisect_left(self.bounds, bound)] += count
        self.sum += total


Child = TypeVar("Child")


class _Family(Collector, Generic[Child]):
    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry | None) -> None:
        """Raises ValueError for a name that is in use. Without labels the only child is made at once."""
        self.name = name
        self._text = text
        self._labels = tuple(labels)
        self._children: dict[tuple[str, ...], Child] = {}
        if not self._labels:
            self.labels()
        if registry is not None:
            registry.register(self)

    @property
    def shape(self) -> list[str]:
        """See `CountedFamily`."""
        return [*self._labels]

    def labels(self, *values: str) -> Child:
        """The child of these labels, made at the first use. It is kept when a model is registered again."""
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self._new()
        return child

    def remove(self, *values: str) -> None:
        self._children.pop(values, None)

    def collect(self) -> Iterable[Metric]:
        return [self._metric(list(self._children.items()))]

    @abstractmethod
    def _new(self) -> Child: ...

    @abstractmethod
    def _metric(self, children: list[tuple[tuple[str, ...], Child]]) -> Metric: ...


class CounterFamily(_Family[Counter]):
    def counts(self) -> Iterator[tuple[tuple[str, ...], list[float]]]:
        """See `CountedFamily`."""
        return ((values, [child.value]) for values, child in self._children.items())

    def add_counts(self, labels: tuple[str, ...], counts: Sequence[float]) -> None:
        (value,) = counts
        self.labels(*labels).inc(value)

    def _new(self) -> Counter:
        return Counter()

    def _metric(self, children: list[tuple[tuple[str, ...], Counter]]) -> Metric:
        metric = CounterMetricFamily(self.name, self._text, labels=self._labels)
        for values, child in children:
            metric.add_metric(values, child.value)
        return metric


Bucket = tuple[str, float] | tuple[str, float, Exemplar]


class HistogramFamily(_Family[Histogram]):
    def __init__(
        self,
        name: str,
        text: str,
        labels: Sequence[str],
        buckets: tuple[float, ...],
        registry: CollectorRegistry | None,
    ) -> None:
        """`buckets` are upper bounds, ascending; infinity need not be among them."""
        self._bounds = tuple(bound for bound in buckets if bound != inf)
        super().__init__(name, text, labels, registry)

    @property
    def shape(self) -> list[str]:
        return [*self._labels, *map(str, self._bounds)]

    def counts(self) -> Iterator[tuple[tuple[str, ...], list[float]]]:
        """See `CountedFamily`."""
        return ((values, child.all_counts) for values, child in self._children.items())

    def add_counts(self, labels: tuple[str, ...], counts: Sequence[float]) -> None:
        self.labels(*labels).add(counts)

    def with_bounds(self, values: tuple[str, ...], bounds: tuple[float, ...]) -> Histogram:
        """The child of these labels; where it is new, with `bounds` of its own."""
        return self._children.setdefault(values, Histogram(bounds or self._bounds))

    def _new(self) -> Histogram:
        return Histogram(self._bounds)

    def _buckets(self, child: Histogram) -> Iterator[Bucket]:
        texts = _texts(child.bounds)
        for number, (text, count) in enumerate(zip(texts, accumulate(child.counts), strict=True)):
            known = child.exemplars.get(number)
            yield (text, count) if known is None else (text, count, known)

    def _metric(self, children: list[tuple[tuple[str, ...], Histogram]]) -> Metric:
        metric = HistogramMetricFamily(self.name, self._text, labels=self._labels)
        for values, child in children:
            metric.add_metric(values, list(self._buckets(child)), child.sum)
        return metric


@lru_cache(1024)
def _texts(bounds: tuple[float, ...]) -> list[str]:
    return [floatToGoString(bound) for bound in (*bounds, inf)]  # type: ignore[no-untyped-call]
