"""Kinds, units and labels of metrics."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

UNITS = {
    "ms": "Milliseconds",
    "s": "Seconds",
    "percent": "Percent",
    "count": "Count",
    "MB": "Megabytes",
    "kB": "Kilobytes",
    "GB": "Gigabytes",
    "B": "Bytes",
}


class DimensionLike(Protocol):
    """A label as TorchServe's handlers give it."""

    name: Any
    value: Any


Dimensions = Mapping[str, str] | Iterable[DimensionLike]


def labels_of(dimensions: Dimensions | None) -> dict[str, str]:
    if dimensions is None:
        return {}
    return dict(dimensions) if isinstance(dimensions, Mapping) else {one.name: one.value for one in dimensions}


def checked_kind(name: str, metric_type: Any) -> str:
    """The kind as text; TorchServe's MetricTypes is an enumeration of these texts. Raises ValueError for an unknown
    kind."""
    kind = str(getattr(metric_type, "value", metric_type))
    if kind not in (COUNTER, GAUGE, HISTOGRAM):
        raise ValueError(f"metric {name!r} has the unknown type {kind!r}: counter, gauge or histogram")
    return kind
