"""`ts.service`: the names that handlers import. Handlers need not call them here."""

from collections.abc import Iterable

from .metrics.metric import Metric
from .utils.util import PredictionException

__all__ = ["PREDICTION_METRIC", "PredictionException", "emit_metrics"]

PREDICTION_METRIC = "PredictionTime"


def emit_metrics(metrics: Iterable[Metric]) -> None:
    """Print them as the lines that TorchServe's workers print."""
    for metric in metrics:
        print(f"[METRICS]{metric}")  # noqa: T201  # the line is the interface
