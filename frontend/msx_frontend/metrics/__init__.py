"""What Prometheus reads, and the metric logs of TorchServe."""

from msx_frontend.metrics.model import ModelMetrics
from msx_frontend.metrics.server import ServerMetrics

__all__ = ["ModelMetrics", "ServerMetrics"]
