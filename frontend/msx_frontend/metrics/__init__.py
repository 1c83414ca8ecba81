"""Metrics for Prometheus, and TorchServe's metric logs."""

from msx_frontend.metrics.model import ModelMetrics
from msx_frontend.metrics.server import ServerMetrics

__all__ = ["ModelMetrics", "ServerMetrics"]
