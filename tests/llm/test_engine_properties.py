"""Whatever comes together, in whatever order: each text is what it would be alone, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msx_llm.handle import RequestHandle
from msx_llm.limits import EngineLimits
from msx_sdk.errors import PredictionError
from msx_sdk.generation import GenerateDelta, GenerateRequest
from tests.llm.fakes import VOCAB, EngineHarness, alone, ids, limits, read, request

TALKS = [[*prompt, *alone(prompt, 60)] for prompt in ([1], [1, 2, 3, 4, 5], [7] * 9)]
"""Texts of clients that come back: its prompt, and the model's own text."""

PENALTIES: list[dict[str, float]] = [
    {},
    {},
    {"frequency_penalty": 1.5},
    {"repetition_penalty": 2.0},
    {"frequency_penalty": -0.7, "presence_penalty": 2.0, "repetition_penalty": 1.3},
]

RUNNERS: list[dict[str, Any]] = [
    {},
    {"states": True},
    {"paged": True},
    {"mixes": True},
    {"follows": True},
    {"groups": True},
]


@dataclass(frozen=True)
class Visit:
    """A client: comes after `pause` turns of the loop, and leaves after `patience` deltas, or by its deadline."""

    request: GenerateRequest
    pause: int = 0
    patience: int | None = None
    expires: bool = False


prompts = st.builds(
    lambda talk, length, more: talk[:length] + more,
    st.sampled_from(TALKS),
    st.integers(1, 36),
    st.lists(st.integers(0, VOCAB - 1), max_size=6),
)
visits = st.builds(
    Visit,
    st.builds(
        lambda prompt, count, n, priority, stream, eos, scored, penalties: request(
            prompt,
            count,
            n=n,
            priority=priority,
            stream=stream,
            ignore_eos=not eos,
            prompt_logprobs=scored,
            **penalties,
        ),
        prompts,
        st.integers(1, 22),
        st.sampled_from([1, 1, 1, 2, 3]),
        st.integers(-1, 1),
        st.booleans(),
        st.booleans(),
        st.sampled_from([False, False, False, True]),
        st.sampled_from(PENALTIES),
    ),
    st.integers(0, 40),
    st.sampled_from([None, None, None, 0, 1, 4]),
    st.sampled_from([False] * 5 + [True]),
)
shapes = st.builds(
    lambda slots, prefill, total, block: limits(slots=slots, prefill=prefill, total=total, block=block),
    st.integers(2, 5),
    st.sampled_from([4, 7, 16]),
    st.sampled_from([64, 80, 320]),
    st.sampled_from([1, 4, 5]),
)


@settings(max_examples=100)
@given(st.lists(visits, min_size=4, max_size=24), shapes, st.integers(1, 3), st.sampled_from(RUNNERS))
def test_each_text_is_that_of_its_request_alone(
    visits: list[Visit], shape: EngineLimits, lanes: int, runner: dict[str, Any]
) -> None:
    asyncio.run(meet(visits, shape, lanes, runner))


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("runner", RUNNERS)
def test_hundreds_of_requests_leave_nothing_behind(runner: dict[str, Any], count: int) -> None:
    dice = random.Random(4)
    shape = limits(slots=8, total=160, most=count)
    asyncio.run(meet([some_visit(dice, count) for _ in range(count)], shape, 1, runner))


def some_visit(dice: random.Random, turns: int = 1000) -> Visit:
    prompt = dice.choice(TALKS)[: dice.randint(1, 36)] + [dice.randrange(VOCAB) for _ in range(dice.randint(0, 6))]
    asked = request(
        prompt,
        dice.randint(1, 22),
        n=dice.choice([1, 1, 1, 2]),
        priority=dice.randint(0, 2),
        stream=dice.random() < 0.7,
        **dice.choice(PENALTIES),
    )
    patience = dice.choice([None, None, None, dice.randint(0, 10)])
    return Visit(asked, dice.randint(0, turns), patience, dice.random() < 0.05)


async def meet(visits: list[Visit], shape: EngineLimits, lanes: int, runner: dict[str, Any]) -> None:
    async with EngineHarness(shape, lanes=lanes, **runner) as harness:
        await asyncio.gather(*(come(harness, visit) for visit in visits))
        assert harness.idle()
        assert not harness.failures


async def come(harness: EngineHarness, visit: Visit) -> None:
    for _ in range(visit.pause):
        await asyncio.sleep(0)
    deadline = time.monotonic() + 1e-3 if visit.expires else None
    with harness.engine.submit(visit.request, deadline=deadline) as handle:
        try:
            deltas = await take(handle, visit.patience)
        except PredictionError as error:
            if not visit.expires or error.status != 504:
                raise
        else:
            if visit.patience is None:
                check(visit.request, deltas)


async def take(handle: RequestHandle, most: int | None) -> list[GenerateDelta]:
    if most is None:
        return await read(handle)
    return [delta for _ in range(most) if (delta := await anext(handle, None)) is not None]


def check(asked: GenerateRequest, deltas: list[GenerateDelta]) -> None:
    params, prompt = asked.params, [token for token in asked.prompt or () if isinstance(token, int)]
    text = alone(prompt, params.max_tokens or 0, eos=not params.ignore_eos, params=params)
    for index in range(params.n):
        assert ids(deltas, index) == text
    last = deltas[-1].usage
    assert last is not None
    assert (last.prompt, last.completion) == (len(prompt), len(text) * params.n)
    assert 0 <= last.cached < len(prompt)
    if params.prompt_logprobs:
        assert [token.id for token in deltas[0].prompt_tokens] == prompt
