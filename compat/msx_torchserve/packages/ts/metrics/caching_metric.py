"""`ts.metrics.caching_metric`: a metric that a handler makes without `context.metrics`."""

import socket
import time
from collections.abc import Sequence

from msx_sdk.metrics import Metrics

from .dimension import Dimension
from .metric_abstract import MetricAbstract


class CachingMetric(MetricAbstract):
    """Each update is printed as a line, as TorchServe's workers do. A wrong update is logged and dropped."""

    def add_or_update(self, value: float, dimension_values: Sequence[str] = (), request_id: str = "") -> None:
        metrics = Metrics()
        cached = metrics.add_metric_to_cache(self.metric_name, self.unit, self.dimension_names, self.metric_type)
        cached.add_or_update(value, dimension_values, request_id)
        self._print(metrics)

    def update(self, value: float, request_id: str = "", dimensions: Sequence[Dimension] = ()) -> None:
        """TorchServe's older call."""
        metrics = Metrics()
        cached = metrics.add_metric_to_cache(self.metric_name, self.unit, self.dimension_names, self.metric_type)
        cached.update(value, request_id, dimensions)
        self._print(metrics)

    def _print(self, metrics: Metrics) -> None:
        for sample in metrics.take():
            labels = ",".join(f"{name}:{value}" for name, value in sample.labels)
            ids = f",{sample.request_id}" if sample.request_id else ""
            origin = f"|#type:{sample.kind.upper()}|#hostname:{socket.gethostname()},{int(time.time())}{ids}"
            print(f"[METRICS]{sample.name}.{sample.unit}:{sample.value}|#{labels}{origin}")  # noqa: T201
