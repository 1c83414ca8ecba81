"""`ts.metrics.caching_metric`."""

from msx_sdk.metrics import CachedMetric as CachingMetric

__all__ = ["CachingMetric"]
