"""Prometheus' text format as TorchServe writes it: with a comma after each label, also after the last one."""

from collections.abc import Iterator

from prometheus_client import disable_created_metrics
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from msx_frontend.metrics.escaping import label_pairs

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second sample for each counter, which dashboards do not use

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_TYPES = {"unknown": "counter"}
"""Counters that keep their declared name have the type "unknown"; no other metric has it."""


def exposition(registry: Collector) -> bytes:
    return "".join(line for metric in registry.collect() for line in _lines(metric)).encode()


def _lines(metric: Metric) -> Iterator[str]:
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    text = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {text}\n# TYPE {name} {_TYPES.get(metric.type, metric.type)}\n"
    for sample in metric.samples:
        yield f"{sample.name}{_labels(sample)} {floatToGoString(sample.value)}\n"  # type: ignore[no-untyped-call]


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    return f"{{{label_pairs(sample.labels)},}}"
