"""`ts.metrics.metric_cache_abstract`: the type of `context.metrics`."""

from msx_sdk.metrics import Metrics as MetricCacheAbstract

__all__ = ["MetricCacheAbstract"]
