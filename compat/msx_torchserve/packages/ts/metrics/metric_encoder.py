"""`ts.metrics.metric_encoder`."""

from json import JSONEncoder
from typing import Any

from .dimension import Dimension
from .metric import Metric


class MetricEncoder(JSONEncoder):
    """Metrics and dimensions as JSON."""

    def default(self, o: Any) -> Any:
        return o.to_dict() if isinstance(o, (Metric, Dimension)) else super().default(o)
