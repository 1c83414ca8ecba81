"""Metrics of a handler: the server sends those of metrics.yaml, and gets samples in a Pong."""

from msx_protocol.message import WireMessage


class MetricDeclaration(WireMessage):
    """A metric in `model_metrics` of metrics.yaml, which handlers find by `context.metrics.get_metric`."""

    kind: str
    name: str
    unit: str
    dimensions: list[str]


class MetricSample(WireMessage):
    """`request_id` names the request, or all requests of the call with commas between; "" outside of calls.

    `counts`: observations of a histogram by the buckets that its MetricInfo names, and one above them; `value` is then
    their sum.
    """

    name: str
    kind: str
    unit: str
    value: float
    labels: list[tuple[str, str]]
    request_id: str = ""
    counts: tuple[int, ...] = ()


class MetricInfo(WireMessage):
    """A metric that a handler made by the SDK's own calls. It is labelled with the version, and a gauge also with the
    worker.

    `help` is "" and `buckets` are empty where the defaults of the unit are wanted.
    """

    name: str
    kind: str
    help: str = ""
    buckets: tuple[float, ...] = ()
