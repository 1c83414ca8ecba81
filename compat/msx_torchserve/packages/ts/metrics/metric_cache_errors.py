"""`ts.metrics.metric_cache_errors`: TorchServe's names of the errors that `context.metrics` raises."""

import yaml

from msx_sdk.metrics import MetricNotFound as MetricsCacheKeyError

__all__ = [
    "GeneralMetricsCacheError",
    "MetricsCacheIOError",
    "MetricsCacheKeyError",
    "MetricsCachePyYamlError",
    "MetricsCacheTypeError",
    "MetricsCacheValueError",
]

MetricsCacheValueError = ValueError
MetricsCacheTypeError = TypeError
MetricsCacheIOError = OSError
MetricsCachePyYamlError = yaml.YAMLError


class GeneralMetricsCacheError(Exception):
    """Never raised here; for handlers that catch it."""
