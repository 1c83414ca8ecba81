"""TorchServe's metrics.yaml: the declared metrics, before any of them has a sample."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from msx_core.metrics.descriptors import checked_buckets, checked_help
from msx_core.safe_yaml import read_yaml
from msx_core.start_errors import StartError
from msx_core.values import ConfigError

Kind = Literal["counter", "gauge", "histogram"]

HOSTNAME = "Hostname"
DEFAULT_FILE = Path(__file__).with_name("metrics.yaml")

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class MetricsConfigError(StartError):
    """The file of `metrics_config` cannot be used."""


class DeclaredMetric(msgspec.Struct, frozen=True):
    name: str
    unit: str
    dimensions: tuple[str, ...] = ()
    help: str = ""
    """`help` and `buckets` exist in MSX only; `buckets` for histograms."""
    buckets: tuple[float, ...] | None = None

    @property
    def bounds(self) -> tuple[float, ...]:
        """The bounds without infinity; () for the default bounds of the unit."""
        return checked_buckets(self.name, self.buckets)


_ByKind = dict[Kind, list[DeclaredMetric] | None]


class _MetricsFile(msgspec.Struct):
    dimensions: list[str] | None = None
    """Anchors for the lines below, with no meaning of their own."""
    ts_metrics: _ByKind | None = None
    model_metrics: _ByKind | None = None


class MetricsSpec(msgspec.Struct, frozen=True):
    """The server's own metrics and those of handlers, each with its kind."""

    ts: tuple[tuple[Kind, DeclaredMetric], ...]
    model: tuple[tuple[Kind, DeclaredMetric], ...]


def load_spec(path: Path | None = None) -> MetricsSpec:
    """Read `metrics_config`, or the default file. Raises MetricsConfigError."""
    path = path or DEFAULT_FILE
    try:
        found = msgspec.convert(read_yaml(path) or {}, _MetricsFile)
    except (ConfigError, msgspec.ValidationError) as error:
        text = " ".join(str(error).removeprefix(f"{path}: ").split())
        raise MetricsConfigError(f"metrics_config: {path} is not a metrics.yaml: {text}") from None
    spec = MetricsSpec(tuple(_all(found.ts_metrics)), tuple(_all(found.model_metrics)))
    _check(path, spec)
    return spec


def _all(by_kind: _ByKind | None) -> Iterator[tuple[Kind, DeclaredMetric]]:
    for kind, metrics in (by_kind or {}).items():
        for metric in metrics or []:
            yield kind, metric


def _check(path: Path, spec: MetricsSpec) -> None:
    seen: set[str] = set()
    for kind, metric in [*spec.ts, *spec.model]:
        if not _NAME.fullmatch(metric.name):
            raise MetricsConfigError(f"metrics_config: {path}: {metric.name!r} is not a valid name of a metric")
        if metric.name in seen:
            raise MetricsConfigError(f"metrics_config: {path}: the metric {metric.name} is declared twice")
        if odd := [name for name in metric.dimensions if not _LABEL.fullmatch(name)]:
            raise MetricsConfigError(f"metrics_config: {path}: {metric.name}: {odd[0]!r} is not a valid dimension")
        if len(set(metric.dimensions)) < len(metric.dimensions):
            raise MetricsConfigError(f"metrics_config: {path}: {metric.name}: a dimension is given twice")
        _check_form(path, kind, metric)
        seen.add(metric.name)


def _check_form(path: Path, kind: Kind, metric: DeclaredMetric) -> None:
    if metric.buckets is not None and kind != "histogram":
        raise MetricsConfigError(
            f"metrics_config: {path}: the {kind} {metric.name} has buckets, which are for histograms only"
        )
    try:
        checked_help(metric.name, metric.help)
        checked_buckets(metric.name, metric.buckets)
    except ValueError as error:
        raise MetricsConfigError(f"metrics_config: {path}: {error}") from None
