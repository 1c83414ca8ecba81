"""Speculative decoding in the engine: drafts change how many steps a text takes, and nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from msx_core.config import SpeculativeOptions
from msx_llm import speculator as module
from msx_llm.kernels.cpu.states import StateLayout
from msx_llm.limits import EngineLimits
from msx_llm.models.delta import DeltaConfig
from msx_llm.sampling import Constraints
from msx_llm.speculation import drafts
from msx_llm.speculation.ngram import NgramIndex
from msx_llm.step import CopyPositions, Decode, KeepState, Mixed, Prefill, Step
from msx_sdk.generation import Constraint, GenerateDelta, GenerateRequest
from tests.llm.fakes import (
    END,
    VOCAB,
    EngineHarness,
    FakeRunner,
    FakeStateRunner,
    alone,
    ids,
    limits,
    make_tokenizer,
    read,
    request,
)
from tests.llm.test_engine_properties import meet, some_visit

Scene = Callable[[EngineHarness], Awaitable[None]]
RUNNERS: list[dict[str, Any]] = [{}, {"paged": True}, {"mixes": True}, {"lanes": 2}]
WIDE = limits(slots=8)


class Oracle(NgramIndex):
    """Drafts what a greedy text really goes on with, up to a place where it is wrong now and then."""

    dice = random.Random(5)

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        draft = alone(tokens, max(most, 0))
        if draft and self.dice.random() < 0.5:
            place = self.dice.randrange(len(draft))
            draft[place] = (draft[place] + 1) % VOCAB
        return draft


@pytest.fixture(autouse=True)
def oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs do not matter: there are drafts in every other step at least."""
    monkeypatch.setattr(module, "NgramIndex", Oracle)
    monkeypatch.setattr(module, "TRIAL", 1e9)


def play(scene: Scene, shape: EngineLimits = WIDE, **options: Any) -> None:
    async def with_harness() -> None:
        async with EngineHarness(shape, speculative=SpeculativeOptions(tokens=4), **options) as harness:
            await scene(harness)
            assert harness.idle()

    asyncio.run(with_harness())


async def answer(harness: EngineHarness, asked: GenerateRequest) -> list[GenerateDelta]:
    return await read(harness.engine.submit(asked))


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_text_is_that_of_the_model_in_fewer_steps(runner: dict[str, Any]) -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(range(5), 40))
        assert ids(deltas) == alone(range(5), 40)
        assert len(deltas) == 40
        stats = harness.engine.stats()
        assert 0 < stats.accepted < stats.drafted
        steps = [step for step in harness.runner.log if isinstance(step, (Decode, Mixed))]
        assert len(steps) <= 40 - stats.accepted

    play(scene, **runner)


@pytest.mark.parametrize("runner", RUNNERS)
def test_hundreds_of_requests_leave_nothing_behind(runner: dict[str, Any]) -> None:
    """They come, leave, wait, and are preempted."""
    dice = random.Random(6)
    options = {"speculative": SpeculativeOptions(tokens=4), **runner}
    lanes = options.pop("lanes", 1)
    asyncio.run(meet([some_visit(dice) for _ in range(200)], limits(slots=6, total=160, most=300), lanes, options))


def test_a_full_batch_has_no_room_for_drafts() -> None:
    async def scene(harness: EngineHarness) -> None:
        texts = await asyncio.gather(*(answer(harness, request([place, 7], 9)) for place in range(4)))
        assert [ids(deltas) for deltas in texts] == [alone([place, 7], 9) for place in range(4)]
        assert max(len(step.slots) for step in harness.decodes) == 4

    play(scene, limits(slots=4))


def test_a_request_without_speculation() -> None:
    async def scene(harness: EngineHarness) -> None:
        assert ids(await answer(harness, request(range(5), 20, speculative=False))) == alone(range(5), 20)
        assert harness.engine.stats().drafted == 0

    play(scene)


def test_a_text_ends_within_accepted_tokens() -> None:
    """By a stop token, and by a string, which is found a step later."""
    text = alone([3, 4], 20)

    async def scene(harness: EngineHarness) -> None:
        for place in range(1, 12):
            if text[place] not in text[:place]:
                deltas = await answer(harness, request([3, 4], 20, stop_token_ids=(text[place],)))
                assert (ids(deltas), deltas[-1].stop_reason) == (text[: place + 1], text[place])
            assert ids(await answer(harness, request([3, 4], place))) == text[:place]
        whole = "".join(delta.text for delta in await answer(harness, request([3, 4], 20)))
        for place in range(2, 10):
            stop = whole[place : place + 2]
            deltas = await answer(harness, request([3, 4], 20, stop=(stop,)))
            assert "".join(delta.text for delta in deltas) == whole[: whole.index(stop)]
            assert deltas[-1].usage is not None
            assert deltas[-1].usage.completion == sum(len(delta.tokens) for delta in deltas)

    play(scene)


@pytest.mark.parametrize(
    "params", [{}, {"repetition_penalty": 1.5, "logprobs": 2}, {"min_tokens": 6, "bad_words": ("a",)}]
)
def test_by_a_seed_the_same_text_as_without(params: dict[str, Any]) -> None:
    asked = request([9, 9], 24, temperature=0.4, seed=11, top_p=0.9, **params)

    async def told(speculative: SpeculativeOptions | None) -> tuple[list[Any], int]:
        async with EngineHarness(WIDE, speculative=speculative) as harness:
            tokens = [token for delta in await answer(harness, asked) for token in delta.tokens]
            return tokens, harness.engine.stats().accepted

    expected, _ = asyncio.run(told(None))
    found, accepted = asyncio.run(told(SpeculativeOptions(tokens=4)))
    assert found == expected
    assert accepted


def test_constraints_hold_drafted_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draft is what the constraint allows, and goes on behind its end."""
    constraints = Constraints(make_tokenizer().to_json(), {END}, VOCAB)
    letters = make_tokenizer().encode("abcabcabc")
    monkeypatch.setattr(Oracle, "draft", lambda self, tokens, most: [*letters, *letters][len(tokens) - 2 :][:most])

    async def scene(harness: EngineHarness) -> None:
        asked = request(
            [5, 6], 30, constraint=Constraint(kind="regex", value="abcabcabc"), ignore_eos=False, logprobs=0
        )
        deltas = await answer(harness, asked)
        assert "".join(delta.text for delta in deltas) == "abcabcabc"
        assert deltas[-1].finish_reason == "eos"
        assert harness.engine.stats().accepted > 3

    play(scene, constraints=constraints)


class Wrong(NgramIndex):
    """Drafts whatever is asked for, with a token somewhere that is wrong."""

    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        draft = alone(tokens, max(most, 0))
        for place in Oracle.dice.sample(range(len(draft)), min(len(draft), 1)):
            draft[place] = (draft[place] + 1) % VOCAB
        return draft


def laid_out(states: int) -> Callable[[Step], None]:
    """Has the states of each step laid out as a CPU's cache of 8 slots does, which raises where one was lost."""
    heads: dict[str, Any] = {"key_heads": 1, "value_heads": 1, "key": 1, "value": 1}
    layout = StateLayout(DeltaConfig(**heads, kernel=4, layers=(True,), drafts=states // 8), (8,))

    def take(step: Step) -> None:
        if isinstance(step, Prefill):
            layout.places([step.slot], np.arange(step.start, step.start + len(step.tokens))[None])
        elif isinstance(step, CopyPositions):
            layout.copied(step.source, step.target, step.length)
        elif isinstance(step, KeepState):
            layout.kept(step.slot)
        elif isinstance(step, Decode):
            padding = 8 - len(step.slots)
            layout.places([*step.slots, *[None] * padding], np.array([*step.positions, *[-1] * padding])[:, None])

    return take


@pytest.mark.parametrize("states", [8, 16])
def test_texts_of_two_lanes_find_the_states_behind_their_drafts(monkeypatch: pytest.MonkeyPatch, states: int) -> None:
    """Each token of a step leaves a state, of which the cache has one or two for each slot."""
    monkeypatch.setattr(module, "NgramIndex", Wrong)
    monkeypatch.setattr(module, "HOPE", 1.0)
    monkeypatch.setattr(drafts, "learned", lambda rate, *outcome: rate)

    async def call() -> None:
        speculative = SpeculativeOptions(tokens=7)
        async with EngineHarness(WIDE, lanes=2, speculative=speculative, draft_states=states) as harness:
            harness.runner.fails = laid_out(states)
            prompts = [[place, 7, place] for place in range(4)]
            found = await asyncio.gather(*(answer(harness, request(prompt, 55)) for prompt in prompts))
            assert [ids(deltas) for deltas in found] == [alone(prompt, 55) for prompt in prompts]
            assert harness.engine.stats().drafted > 100

    asyncio.run(call())


class Right(NgramIndex):
    def draft(self, tokens: Sequence[int], most: int) -> list[int]:
        return alone(tokens, max(most, 0))


def test_texts_that_have_ended_leave_their_states_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them ends with a step of drafted tokens, in a slot of its own."""
    monkeypatch.setattr(module, "NgramIndex", Right)
    drafted = [0]

    async def scene(harness: EngineHarness) -> None:
        harness.runner.fails = laid_out(8)
        for place in range(8):
            prompt = [place, 7, place]
            assert ids(await answer(harness, request(prompt, 40))) == alone(prompt, 40)
            drafted.append(harness.engine.stats().drafted)
        added = [after - before for before, after in pairwise(drafted)]
        assert min(added[1:]) == max(added[1:]) > 20, added

    play(scene, draft_states=8)


@pytest.mark.parametrize(("lanes", "states"), [(1, 8), (2, 8), (2, 16)])
def test_states_are_found_while_texts_come_and_go(monkeypatch: pytest.MonkeyPatch, lanes: int, states: int) -> None:
    monkeypatch.setattr(module, "HOPE", 1.0)
    monkeypatch.setattr(drafts, "learned", lambda rate, *outcome: rate)
    monkeypatch.setattr(FakeStateRunner, "_append", FakeRunner._append)  # the layout says which states there are
    dice = random.Random(7)

    async def scene(harness: EngineHarness) -> None:
        harness.runner.fails = laid_out(states)

        async def visit(first: int) -> None:
            count, prompt = dice.randrange(2, 40), [first, 7, first]
            assert ids(await answer(harness, request(prompt, count))) == alone(prompt, count)
            again = [*prompt, *alone(prompt, count)]
            assert ids(await answer(harness, request(again, 12))) == alone(again, 12)

        async def visits(firsts: Sequence[int]) -> None:
            for first in firsts:
                await visit(first)

        await asyncio.gather(*(visits(range(start, 200, 5)) for start in range(5)))
        assert harness.engine.stats().drafted > 100

    play(scene, lanes=lanes, states=True, draft_states=states)
