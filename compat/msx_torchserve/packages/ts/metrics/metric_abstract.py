"""`ts.metrics.metric_abstract`: the type of what `add_metric_to_cache` and `get_metric` return."""

import abc
from collections.abc import Sequence

from msx_sdk.metrics import CachedMetric

from .metric_type_enum import MetricTypes


class MetricAbstract(abc.ABC):
    def __init__(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str] | None = None,
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> None:
        self.metric_name, self.unit, self.metric_type = metric_name, unit, metric_type
        self.dimension_names = list(dimension_names or [])

    @abc.abstractmethod
    def add_or_update(self, value: float, dimension_values: Sequence[str], request_id: str = "") -> None:
        """Add to a counter, set a gauge, observe in a histogram."""


MetricAbstract.register(CachedMetric)
