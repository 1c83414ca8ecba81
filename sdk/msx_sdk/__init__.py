"""The public names for authors of handlers."""

from msx_core.marked_methods import method
from msx_core.results import Last
from msx_core.streaming import send_intermediate_predict_response
from msx_sdk.context import Context, ModelInfo
from msx_sdk.errors import HandlerLoadError, InvalidInput, PredictionError
from msx_sdk.handler import Handler
from msx_sdk.metrics import Metric, Metrics

__all__ = [
    "Context",
    "Handler",
    "HandlerLoadError",
    "InvalidInput",
    "Last",
    "Metric",
    "Metrics",
    "ModelInfo",
    "PredictionError",
    "method",
    "send_intermediate_predict_response",
]
