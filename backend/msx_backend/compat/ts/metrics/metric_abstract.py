"""`ts.metrics.metric_abstract`: the type of what `add_metric_to_cache` and `get_metric` return."""

from msx_sdk.metrics import CachedMetric as MetricAbstract

__all__ = ["MetricAbstract"]
