"""`ts.metrics.metrics_store`: what `context.metrics` was before TorchServe 0.6."""

from collections.abc import Mapping

from msx_core.metrics.samples import Sample
from msx_sdk.metrics import Metrics


class MetricsStore(Metrics):
    def __init__(self, request_ids: Mapping[int, str] | None, model_name: str) -> None:
        super().__init__(model_name)
        self.request_ids = request_ids

    @property
    def store(self) -> list[Sample]:
        """The samples that were not taken yet."""
        return list(self._samples)
