"""vLLM's own metrics, as its logger of statistics leaves them in this process's registry of prometheus_client.

vLLM calls the interface of those statistics unstable: nothing else here knows the names of its metrics.
"""

from collections.abc import Iterator
from typing import Any

from prometheus_client import REGISTRY

from msx_vllm.figures import VllmFigures, VllmSeries

PREFIX = "vllm:"
LEFT_OUT = frozenset({"model_name", "engine"})
"""Labels that say which engine of a process it is: the server labels the model and the worker."""
KINDS = ("gauge", "counter")


class EngineSeries:
    """Gauges and counters; histograms and those that describe the configuration are left out. `blocks`: how many blocks
    the cache of keys and values has."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        families = [one for one in REGISTRY.collect() if one.name.startswith(PREFIX) and one.type in KINDS]
        names = [_shown(one) for one in families if not one.name.endswith("_info")]
        self._registry = REGISTRY.restricted_registry(names)

    def read(self) -> VllmFigures:
        series = tuple(self._series())
        total = {name: sum(one.value for one in series if one.name == name) for name in {one.name for one in series}}
        return VllmFigures(
            series=series,
            running=total.get("vllm:num_requests_running", 0),
            waiting=total.get("vllm:num_requests_waiting", 0),
            preempted=total.get("vllm:num_preemptions_total", 0),
            blocks_used=round(total.get("vllm:kv_cache_usage_perc", 0) * self._blocks),
            blocks_total=self._blocks,
            prefix_hit=total.get("vllm:prefix_cache_hits_total", 0),
            prefix_placed=total.get("vllm:prefix_cache_queries_total", 0),
        )

    def _series(self) -> Iterator[VllmSeries]:
        for family in self._registry.collect():
            for sample in family.samples:
                if sample.name == _shown(family):
                    labels = {name: text for name, text in sample.labels.items() if name not in LEFT_OUT}
                    yield VllmSeries(
                        sample.name, "counter" if family.type == "counter" else "gauge", labels, sample.value
                    )


def _shown(family: Any) -> str:
    return f"{family.name}_total" if family.type == "counter" else str(family.name)
