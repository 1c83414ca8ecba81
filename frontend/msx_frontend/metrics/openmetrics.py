"""OpenMetrics 1.0, for clients that ask for it: `Accept: application/openmetrics-text; version=1.0.0`.

Names of samples are those of the other format. A counter whose name does not end in `_total`, as some of TorchServe's
and of handlers', has the type "unknown": OpenMetrics would have another name for it.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import isnan

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from msx_frontend.metrics.escaping import escaped, label_pairs

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_TOTAL = "_total"
_UNITS = ("seconds", "bytes", "microseconds")
_SUFFIXES = {"counter": ("", "_total", "_created"), "histogram": ("", "_bucket", "_count", "_sum", "_created")}


def openmetrics(registry: Collector) -> bytes:
    metrics = list(registry.collect())
    taken = {name for metric in metrics for name in _names(metric)}
    lines = (line for metric in metrics for line in _family(metric, taken))
    return "".join((*lines, "# EOF\n")).encode()


def _names(metric: Metric) -> list[str]:
    """The names that a family takes for itself."""
    return [f"{metric.name}{suffix}" for suffix in _SUFFIXES.get(metric.type, ("",))]


def _family(metric: Metric, taken: set[str]) -> Iterator[str]:
    if metric.type == "unknown" and _becomes_counter(metric.name, taken):
        yield from _lines(metric.name.removesuffix(_TOTAL), "counter", metric)
    elif metric.type != "histogram":
        yield from _lines(metric.name, metric.type, metric)
    elif metric.samples and all(sample.name != f"{metric.name}_bucket" for sample in metric.samples):
        yield from _parts(metric)
    else:
        yield from _lines(metric.name, "histogram", metric, _whole(metric))


def _becomes_counter(name: str, taken: set[str]) -> bool:
    """Its name is a counter's, and no other family has a name that belongs to it: it takes them."""
    family = name.removesuffix(_TOTAL)
    names = {family, f"{family}_created"}
    if not family or family == name or names & taken:
        return False
    taken |= names
    return True


def _parts(metric: Metric) -> Iterator[str]:
    """Parts of histograms that were asked for by name: without their buckets they are none."""
    for name, samples in groupby(metric.samples, key=lambda sample: sample.name):
        yield from _lines(name, "unknown", metric, samples)


def _whole(metric: Metric) -> Iterator[Sample]:
    """A sum that may fall is not a sum of OpenMetrics, which then wants no count either."""
    for _, group in groupby(metric.samples, key=_without_bound):
        samples = list(group)
        falls = any(sample.name.endswith("_sum") and (sample.value < 0 or isnan(sample.value)) for sample in samples)
        falls = falls or any(float(sample.labels.get("le", 0)) < 0 for sample in samples)
        yield from (sample for sample in samples if not falls or sample.name.endswith("_bucket"))


def _without_bound(sample: Sample) -> list[tuple[str, str]]:
    return [(name, value) for name, value in sample.labels.items() if name != "le"]


def _lines(name: str, kind: str, metric: Metric, samples: Iterable[Sample] | None = None) -> Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    if unit := next((unit for unit in _UNITS if name.endswith(f"_{unit}")), ""):
        yield f"# UNIT {name} {unit}\n"
    if metric.documentation:
        yield f"# HELP {name} {escaped(metric.documentation)}\n"
    for sample in metric.samples if samples is None else samples:
        labels = f"{{{label_pairs(sample.labels)}}}" if sample.labels else ""
        yield f"{sample.name}{labels} {floatToGoString(sample.value)}{_exemplar(sample)}\n"  # type: ignore[no-untyped-call]


def _exemplar(sample: Sample) -> str:
    """The trace of one request that is in the bucket."""
    if (found := sample.exemplar) is None:
        return ""
    return f" # {{{label_pairs(found.labels)}}} {found.value} {found.timestamp:.3f}"
