"""Steps that start before the tokens of the last one are read."""

from __future__ import annotations

import asyncio
import time

import pytest

from msx_llm.step import UNREAD, Mixed, Recount, Step
from msx_sdk.errors import PredictionError
from tests.llm.fakes import END, EngineHarness, alone, ids, limits, read, request
from tests.llm.test_engine import answer, play


def unread(step: Step) -> bool:
    return isinstance(step, Mixed) and any(chunk.tokens == (UNREAD,) for chunk in step.chunks)


def test_a_step_starts_while_the_tokens_of_the_last_one_are_on_the_device() -> None:
    async def scene(harness: EngineHarness) -> None:
        handle = harness.engine.submit(request([1, 2], 3))
        for place in range(3):
            step = await harness.steps.release()
            assert unread(step) is (place > 0)
            assert [unread(step) for step in harness.steps.waiting] == [True] * (2 - place), (
                "two at once, until the end"
            )
        assert ids(await read(handle)) == alone([1, 2], 3)

    play(scene, follows=True, gated=True)


def test_a_text_that_a_token_ends_is_in_one_more_step_of_no_use() -> None:
    prompt = next([first, 1] for first in range(256) if END in alone([first, 1], 12, eos=True))
    text = alone(prompt, 12, eos=True)

    async def scene(harness: EngineHarness) -> None:
        found, other = await asyncio.gather(
            answer(harness, request(prompt, 20, ignore_eos=False)), answer(harness, request([7], 20))
        )
        assert ids(found) == text
        assert ids(other) == alone([7], 20)
        assert harness.idle()

    play(scene, follows=True)


def test_a_text_that_needs_the_host_joins_and_leaves() -> None:
    async def scene(harness: EngineHarness) -> None:
        plain = harness.engine.submit(request([1], 20))
        scored = [await answer(harness, request([2, place], 3, logprobs=1)) for place in range(3)]
        assert [ids(deltas) for deltas in scored] == [alone([2, place], 3) for place in range(3)]
        assert ids(await read(plain)) == alone([1], 20)
        ways = [bool(step.choices) for step in harness.runner.log if isinstance(step, Mixed)]
        assert True in ways
        assert False in ways

    play(scene, follows=True)


def test_a_text_with_penalties_is_counted_anew_when_the_host_has_chosen() -> None:
    asked = request([1, 2], 24, frequency_penalty=1.0, repetition_penalty=1.2)

    async def scene(harness: EngineHarness) -> None:
        penalized = harness.engine.submit(asked)
        for place in range(2):
            await answer(harness, request([3, place], 3, logprobs=1))
        assert ids(await read(penalized)) == alone([1, 2], 24, params=asked.params)
        steps = [step for step in harness.runner.log if isinstance(step, Mixed)]
        recounts = [number for number, step in enumerate(steps) for one in step.before if isinstance(one, Recount)]
        assert len(recounts) == 2, "behind each of the host's texts"
        assert not any(steps[number - 1].choices for number in recounts)

    play(scene, follows=True)


def test_a_token_that_is_not_read_is_not_made() -> None:
    async def scene(harness: EngineHarness) -> None:
        handle = harness.engine.submit(request([1], None), deadline=time.monotonic() + 0.01)
        await harness.steps.release()
        with pytest.raises(PredictionError, match=r"The request's time was up \(tokens made: 1\)\."):
            await read(handle)

    play(scene, follows=True, gated=True)


def test_keys_of_a_step_that_fails_are_not_shared() -> None:
    """Neither its own nor those of the step that had started behind it; other texts go on."""
    prompt = list(range(40, 52))

    async def scene(harness: EngineHarness) -> None:
        harness.runner.fails = lambda step: (
            RuntimeError("no") if isinstance(step, Mixed) and 45 in tokens(step) else None
        )
        with pytest.raises(PredictionError, match="no"):
            await answer(harness, request(prompt, 5))
        harness.runner.fails = lambda step: None
        again = harness.engine.submit(request(prompt, 5))
        assert ids(await read(again)) == alone(prompt, 5)
        assert harness.engine.stats().prefix_hit == 0
        assert not harness.failures

    play(scene, limits(slots=2), follows=True)


def tokens(step: Step) -> list[int]:
    return [token for chunk in step.chunks for token in chunk.tokens] if isinstance(step, Mixed) else []


def test_logits_that_are_not_numbers_end_their_own_text() -> None:
    async def scene(harness: EngineHarness) -> None:
        harness.runner.poison = 66
        bad, good = harness.engine.submit(request([66], 9)), harness.engine.submit(request([1], 9))
        with pytest.raises(PredictionError, match="not finite"):
            await read(bad)
        assert ids(await read(good)) == alone([1], 9)
        assert harness.idle()

    play(scene, follows=True)
