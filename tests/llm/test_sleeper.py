"""An engine that sleeps has no requests, and nothing in its cache."""

from __future__ import annotations

import asyncio

import pytest

from msx_llm.step import Sleep, Wake
from msx_sdk.errors import PredictionError
from tests.llm.fakes import EngineHarness, alone, ids, request
from tests.llm.test_engine import answer, play


@pytest.mark.parametrize("level", [1, 2])
def test_tokens_after_waking_are_those_before(level: int) -> None:
    async def scene(harness: EngineHarness) -> None:
        asked = request(range(40), 8)
        assert ids(await answer(harness, asked)) == alone(range(40), 8)
        assert await harness.engine.sleep(level) == level
        assert await harness.engine.sleep(0) == 0
        assert ids(await answer(harness, asked)) == alone(range(40), 8)
        assert harness.engine.stats().prefix_hit == 0
        assert [step for step in harness.runner.log if isinstance(step, Sleep | Wake)] == [Sleep(level == 2), Wake()]

    play(scene)


def test_who_asks_meanwhile_is_told() -> None:
    async def scene(harness: EngineHarness) -> None:
        await harness.engine.sleep(1)
        with pytest.raises(PredictionError, match="The model is asleep") as refused:
            harness.engine.submit(request(range(5)))
        assert refused.value.status == 503

    play(scene)


def test_requests_in_progress_end() -> None:
    async def scene(harness: EngineHarness) -> None:
        reading = asyncio.ensure_future(answer(harness, request(range(5), 40)))
        await harness.steps.release()
        sleeping = asyncio.ensure_future(harness.engine.sleep(2))
        harness.steps.open()
        await sleeping
        with pytest.raises(PredictionError, match="The model is asleep"):
            await reading
        assert harness.idle()

    play(scene, gated=True)


def test_a_deeper_sleep_goes_on() -> None:
    async def scene(harness: EngineHarness) -> None:
        for level, now in ((1, 1), (2, 2), (1, 2)):
            assert await harness.engine.sleep(level) == now
        await harness.engine.sleep(0)
        await harness.engine.sleep(0)
        steps = [step for step in harness.runner.log if isinstance(step, Sleep | Wake)]
        assert steps == [Sleep(False), Sleep(True), Wake()]

    play(scene)


def test_a_runner_that_cannot_wake_is_broken() -> None:
    async def scene(harness: EngineHarness) -> None:
        await harness.engine.sleep(2)
        harness.runner.fails = lambda step: OSError("no such file") if isinstance(step, Wake) else None
        with pytest.raises(OSError, match="no such file"):
            await harness.engine.sleep(0)
        assert harness.failures == ["Prediction failed: the model has stopped working: OSError: no such file"]

    play(scene)
