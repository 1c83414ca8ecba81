"""`ts.metrics.metric_cache_yaml_impl`: a cache that knows the metrics of a file."""

from pathlib import Path
from typing import Any

from msx_sdk.metrics import Metrics

from ..utils.util import get_yaml_config


class MetricsCacheYamlImpl(Metrics):
    """`config_file_path` is a metrics.yaml, whose `model_metrics` `initialize_cache` declares."""

    def __init__(self, config_file_path: str | Path) -> None:
        super().__init__()
        self.config_file_path = config_file_path

    def initialize_cache(self) -> None:
        """Raises OSError, yaml.YAMLError, or KeyError for a metric without name or unit."""
        section: dict[str, list[dict[str, Any]]] = get_yaml_config(self.config_file_path).get("model_metrics") or {}
        for kind, metrics in section.items():
            for metric in metrics:
                self.add_metric_to_cache(metric["name"], metric["unit"], metric.get("dimensions") or [], kind)

    @property
    def cache_keys(self) -> list[str]:
        return [f"{kind}:{name}" for kind, metrics in self.cache.items() for name in metrics]
