"""Descriptors of metrics that a handler makes by `Metrics.counter`, `gauge` or `histogram`. The server gets each one
before the first sample."""

import threading
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

MOST_FORMS = 1000
"""The most descriptors of a handler, so that made-up names cannot fill the memory. The server takes fewer."""

MOST_BUCKETS = 100
LONGEST_HELP = 1000
"""Characters."""


class MetricDescriptor(NamedTuple):
    """`help` "" and `buckets` () stand for the server's defaults for the unit."""

    name: str
    kind: str
    help: str = ""
    buckets: tuple[float, ...] = ()


class MetricDescriptors:
    """The descriptors of all metrics of a handler, by name. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, MetricDescriptor] = {}
        self._new: list[MetricDescriptor] = []
        self._lock = threading.Lock()

    def tell(self, form: MetricDescriptor) -> None:
        """Keeps the first descriptor of a name. Raises ValueError for one with other buckets."""
        with self._lock:
            known = self._known.get(form.name)
            if known is not None:
                _check_same(known, form)
            elif len(self._known) < MOST_FORMS:
                self._known[form.name] = form
                self._new.append(form)

    def buckets_of(self, name: str) -> tuple[float, ...]:
        """The buckets that the handler has given; () for a metric without."""
        known = self._known.get(name)
        return () if known is None else known.buckets

    def tell_again(self) -> None:
        """Let `take` return all: another server asks."""
        with self._lock:
            self._new = [*self._known.values()]

    def take(self) -> list[MetricDescriptor]:
        """The descriptors that were not taken before."""
        with self._lock:
            new, self._new = self._new, []
        return new


def checked_buckets(name: str, buckets: Sequence[float] | None) -> tuple[float, ...]:
    """Upper bounds as floats, without infinity, which is always one; () for None. Raises ValueError for other
    bounds."""
    if buckets is None:
        return ()
    bounds = tuple(float(bound) for bound in buckets)
    finite = bounds[:-1] if bounds[-1:] == (inf,) else bounds
    if not 0 < len(finite) <= MOST_BUCKETS:
        raise ValueError(f"the histogram {name!r} needs 1 to {MOST_BUCKETS} buckets, got {len(finite)}")
    if any(not low < high for low, high in zip(finite, (*finite[1:], inf), strict=True)) or finite[0] == -inf:
        raise ValueError(f"the buckets of the histogram {name!r} are upper bounds in ascending order: {list(bounds)}")
    return finite


def checked_help(name: str, text: str) -> str:
    """Raises ValueError for a text that is too long."""
    if len(text) > LONGEST_HELP:
        raise ValueError(f"the help of the metric {name!r} has {len(text)} characters; {LONGEST_HELP} are the most")
    return text


def _check_same(known: MetricDescriptor, form: MetricDescriptor) -> None:
    if form.buckets and form.buckets != known.buckets:
        had = list(known.buckets) or "those of its unit"
        raise ValueError(f"the histogram {form.name!r} has its buckets already ({had}), not {list(form.buckets)}")
