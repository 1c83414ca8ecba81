"""Metrics of the engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msx_llm import gauges as module
from msx_llm.gauges import EngineGauges
from msx_llm.stats import EngineStats, RequestTimes, StepSeconds
from msx_sdk.metrics import Metrics

STATS = EngineStats(
    running=2,
    waiting=3,
    steps=4,
    blocks_used=5,
    blocks_total=6,
    prefix_hit=7,
    prefix_placed=8,
    adapters={"sql": (2, 1)},
    adapters_loaded=1,
)


def test_a_second_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.0)
    metrics, asked = Metrics(), 0

    def stats() -> EngineStats:
        nonlocal asked
        asked += 1
        STATS.seconds = StepSeconds(model=1.5, sampling=0.5)
        return STATS

    async def watch() -> None:
        gauges = EngineGauges(metrics, stats)
        while asked < 3:
            await asyncio.sleep(0)
        gauges.stop()
        await asyncio.sleep(0)

    asyncio.run(watch())
    assert asked == 3
    told = {(sample.name, *sample.labels): sample.value for sample in metrics.take()}
    assert told["msx_llm_running",] == 2
    assert told["msx_llm_waiting",] == 3
    assert (told["msx_llm_blocks_used",], told["msx_llm_blocks_total",]) == (5, 6)
    assert (told["msx_llm_prefix_hit_tokens",], told["msx_llm_prefix_placed_tokens",]) == (7, 8)
    assert told["msx_llm_step_seconds", ("part", "model")] == 1.5
    assert told["msx_llm_adapters_loaded",] == 1
    assert told["msx_llm_adapter_texts", ("adapter", "sql"), ("state", "running")] == 2
    assert told["msx_llm_adapter_texts", ("adapter", "sql"), ("state", "waiting")] == 1
    assert told["msx_llm_step_seconds", ("part", "messaging")] == 0


def test_an_adapter_that_was_unloaded_has_no_texts_any_more() -> None:
    metrics, found = Metrics(), [{"sql": (2, 1)}, {}, {}]

    async def tell() -> list[dict[tuple[str, str], float]]:
        gauges = EngineGauges(metrics, lambda: EngineStats(adapters=found.pop(0)))
        told = []
        for last in (False, False, True):
            texts = [one for one in metrics.take() if one.name == "msx_llm_adapter_texts"]
            told.append({(one.labels[0][1], one.labels[1][1]): one.value for one in texts})
            gauges.stop()
            if not last:
                gauges._tell()
        return told

    assert asyncio.run(tell()) == [
        {("sql", "running"): 2, ("sql", "waiting"): 1},
        {("sql", "running"): 0, ("sql", "waiting"): 0},
        {},
    ]


def test_every_metric_is_in_the_docs() -> None:
    metrics = Metrics()

    async def tell() -> None:
        gauges = EngineGauges(metrics, lambda: STATS)
        gauges.stop()
        gauges.tell(RequestTimes(arrived=10.0, started=10.25))

    asyncio.run(tell())
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert [sample.name for sample in metrics.take() if f"`{sample.name}`" not in page] == []


def test_how_long_a_request_waited() -> None:
    metrics = Metrics()

    async def tell() -> None:
        gauges = EngineGauges(metrics, lambda: STATS)
        gauges.stop()
        metrics.take()
        gauges.tell(RequestTimes(arrived=10.0, started=10.25))
        gauges.tell(RequestTimes(arrived=10.0))

    asyncio.run(tell())
    assert [(sample.name, sample.kind, sample.value) for sample in metrics.take()] == [
        ("msx_llm_queue_seconds", "histogram", 0.25)
    ]
