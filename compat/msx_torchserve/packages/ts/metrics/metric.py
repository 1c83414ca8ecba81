"""`ts.metrics.metric`: one value, as older handlers and collectors of metrics make them."""

import socket
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .dimension import Dimension
from .unit import Units


class Metric:
    def __init__(
        self,
        name: str,
        value: float,
        unit: str,
        dimensions: Sequence[Dimension],
        request_id: str | None = None,
        metric_method: str | None = None,
    ) -> None:
        self.name, self.value, self.dimensions = name, value, dimensions
        self.unit = Units().units.get(unit, unit)
        self.request_id, self.metric_method = request_id, metric_method

    def update(self, value: float) -> None:
        """Add to a counter; anything else takes the value."""
        self.value = self.value + value if self.metric_method == "counter" else value

    def reset(self) -> None:
        self.value = 0

    def __str__(self) -> str:
        """The form of TorchServe's metric lines."""
        labels = ",".join(map(str, self.dimensions))
        tail = f",{self.request_id}" if self.request_id else ""
        return (
            f"{self.name}.{self.unit}:{self.value}|#{labels}|#hostname:{socket.gethostname()},{int(time.time())}{tail}"
        )

    def to_dict(self) -> OrderedDict[str, Any]:
        return OrderedDict(
            MetricName=self.name,
            Value=self.value,
            Unit=self.unit,
            Dimensions=self.dimensions,
            Timestamp=int(time.time()),
            HostName=socket.gethostname(),
            RequestId=self.request_id,
        )
