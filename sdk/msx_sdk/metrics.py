"""Metrics of a handler."""

from msx_core.handler_metrics import CachedMetric, Metric, MetricNotFound, Metrics

__all__ = ["CachedMetric", "Metric", "MetricNotFound", "Metrics"]
