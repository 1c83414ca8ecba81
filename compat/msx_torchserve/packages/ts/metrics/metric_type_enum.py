"""`ts.metrics.metric_type_enum`."""

from enum import Enum


class MetricTypes(str, Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
