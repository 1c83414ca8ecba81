"""vLLM's own metrics, as its logger of statistics leaves them in this process's registry of prometheus_client.

vLLM calls the interface of those statistics unstable: nothing else here knows the names of its metrics.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Literal

from prometheus_client import REGISTRY

from msx_vllm.figures import VllmFigures, VllmSeries

PREFIX = "vllm:"
LEFT_OUT = frozenset({"model_name", "engine"})
"""Labels that say which engine of a process it is: the server labels the model and the worker."""
ENDS = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_sum")}
"""Kinds of metrics, and the ends of the names of their samples that are read."""
FIGURES = {
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "preempted": "vllm:num_preemptions_total",
    "used_share": "vllm:kv_cache_usage_perc",
    "prefix_hit": "vllm:prefix_cache_hits_total",
    "prefix_placed": "vllm:prefix_cache_queries_total",
}
"""Samples that become figures of ours; `used_share` is the share of the blocks, 0 to 1."""
MOST_SERIES = 500
"""vLLM has about 50."""
MOST_BUCKETS, MOST_HELP = 100, 1000
"""As many as the server takes of a histogram; characters."""

Labels = frozenset[tuple[str, str]]


class EngineSeries:
    """Gauges, counters and histograms, but those that describe the configuration. `blocks`: how many blocks the cache
    of keys and values has."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        families = [one for one in REGISTRY.collect() if one.name.startswith(PREFIX) and one.type in ENDS]
        shown = [one for one in families if not one.name.endswith("_info")]
        self._all = REGISTRY.restricted_registry([f"{one.name}{end}" for one in shown for end in ENDS[one.type]])
        self._few = REGISTRY.restricted_registry(FIGURES.values())

    def figures(self) -> VllmFigures:
        total: defaultdict[str, float] = defaultdict(float)
        for family in self._few.collect():
            for sample in family.samples:
                total[sample.name] += sample.value
        found = {name: total[theirs] for name, theirs in FIGURES.items()}
        used = round(found.pop("used_share") * self._blocks)
        return VllmFigures(**found, blocks_used=used, blocks_total=self._blocks)

    def series(self) -> Iterator[VllmSeries]:
        return islice(self._series(), MOST_SERIES)

    def _series(self) -> Iterator[VllmSeries]:
        for family in self._all.collect():
            if family.type == "histogram":
                yield from _histograms(family)
                continue
            kind: Literal["gauge", "counter"] = "gauge" if family.type == "gauge" else "counter"
            for sample in family.samples:
                yield VllmSeries(sample.name, kind, dict(_labels(sample)), sample.value, _help(family))


def _histograms(family: Any) -> Iterator[VllmSeries]:
    """Buckets of prometheus_client count what is in those before them, too."""
    buckets: defaultdict[Labels, list[tuple[float, int]]] = defaultdict(list)
    sums: dict[Labels, float] = {}
    for sample in family.samples:
        labels = _labels(sample)
        if sample.name.endswith("_bucket"):
            buckets[labels].append((float(sample.labels["le"]), int(sample.value)))
        else:
            sums[labels] = sample.value
    for labels, counted in buckets.items():
        bounds = tuple(bound for bound, _ in counted[:-1])
        counts = tuple(upto - before for (_, before), (_, upto) in pairwise([(0.0, 0), *counted]))
        if len(bounds) <= MOST_BUCKETS:
            yield VllmSeries(family.name, "histogram", dict(labels), sums[labels], _help(family), bounds, counts)


def _labels(sample: Any) -> Labels:
    return frozenset((name, text) for name, text in sample.labels.items() if name not in LEFT_OUT and name != "le")


def _help(family: Any) -> str:
    return str(family.documentation)[:MOST_HELP]
