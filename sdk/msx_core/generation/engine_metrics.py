"""Metrics that every engine for language models reports, for one dashboard, autoscaler and endpoint picker."""

from collections.abc import Mapping

from msx_core.handler_metrics import Metric, Metrics

EVERY = 1.0
"""Seconds between two reports: the server asks for samples as often."""
QUEUED = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""Upper bounds in seconds."""
COMMON = {
    "running": "Texts in the batch",
    "waiting": "Texts that wait for a place",
    "preempted": "Texts that had to give their place back for a while",
    "blocks_used": "Blocks of the cache of keys and values that hold something",
    "blocks_total": "Blocks of the cache of keys and values",
    "prefix_hit_tokens": "Tokens of placed texts that the cache had already",
    "prefix_placed_tokens": "Tokens of texts that got a place",
}
"""Help by name. docs/metrics.md lists the names, which begin with `msx_llm_`."""


def engine_gauges(metrics: Metrics, more: Mapping[str, str] | None = None) -> dict[str, Metric]:
    """The common gauges and `more`, by the name of an engine's figure: the metric's without `_tokens`."""
    named = {**COMMON, **(more or {})}
    return {name.removesuffix("_tokens"): metrics.gauge(f"msx_llm_{name}", help=text) for name, text in named.items()}


def queue_seconds(metrics: Metrics) -> Metric:
    return metrics.histogram(
        "msx_llm_queue_seconds", "s", buckets=QUEUED, help="Arrival at the engine to the first step"
    )
