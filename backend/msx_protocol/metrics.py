"""Metrics of a handler: those that metrics.yaml declares go to the worker, samples come back in a Pong."""

from __future__ import annotations

from msx_protocol.message import Message


class DeclaredMetric(Message):
    """One of `model_metrics` in metrics.yaml, which handlers find by `context.metrics.get_metric`."""

    kind: str
    name: str
    unit: str
    dimensions: list[str]


class MetricSample(Message):
    """`request_id` is that of the request, or of all requests of the call with commas between; "" outside of calls."""

    name: str
    kind: str
    unit: str
    value: float
    labels: list[tuple[str, str]]
    request_id: str = ""


class MetricInfo(Message):
    """Of a metric that a handler made by the SDK's own calls: it has the version, and a gauge the worker, as labels.

    `help` is "" and `buckets` are empty where the defaults of the unit are wanted.
    """

    name: str
    kind: str
    help: str = ""
    buckets: tuple[float, ...] = ()
