"""Beam search as a request: over an engine, whose prefix cache holds what beams have in common."""

from __future__ import annotations

from typing import Any

import pytest

from msx_core.generation.beams import BeamRounds
from msx_llm.beam_generation import BeamGeneration
from msx_llm.sampling.logprobs import Logprobs
from msx_sdk.errors import InvalidInput
from msx_sdk.generation import BeamSearch, Constraint, GenerateDelta, GenerateRequest
from tests.llm.fakes import (
    END,
    VOCAB,
    EngineHarness,
    after,
    ids,
    limits,
    logits_of,
    make_tokenizer,
    request,
)
from tests.llm.test_engine import play

PROMPT = list(range(40, 70))


def asked(**params: Any) -> GenerateRequest:
    stream = params.pop("stream", False)
    return request(PROMPT, 6, stream=stream, **{"beam_search": BeamSearch(), "ignore_eos": False, "n": 3, **params})


async def searched(harness: EngineHarness, wanted: GenerateRequest) -> list[GenerateDelta]:
    generation = BeamGeneration(harness.engine, make_tokenizer(), limits(context=64), VOCAB)
    return [delta async for delta in generation.generate(wanted, None)]


def by_hand(width: int) -> list[list[int]]:
    rounds = BeamRounds(width, {END}, 6, BeamSearch())
    while not rounds.over:
        rounds.grow([_logprobs([token.id for token in it.tokens]).top(rounds.wanted) for it in rounds.running])
    return [[token.id for token in ended.beam.tokens] for ended in rounds.ended]


def _logprobs(tokens: list[int]) -> Logprobs:
    state = 0
    for token in [*PROMPT, *tokens]:
        state = after(state, token)
    return Logprobs(logits_of(state))


@pytest.mark.parametrize("states", [False, True])
def test_texts_are_the_best_of_all_beams(states: bool) -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await searched(harness, asked())
        assert [ids([delta], index) for index, delta in enumerate(deltas)] == by_hand(3)
        two = await searched(harness, asked(n=2, best_of=3))
        assert [delta.tokens for delta in two] == [delta.tokens for delta in deltas[:2]]
        assert harness.idle()

    play(scene, states=states)


def test_usage_and_log_probabilities() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await searched(harness, asked(logprobs=2))
        usage = deltas[-1].usage
        assert usage is not None
        assert (usage.prompt, usage.completion) == (30, sum(len(delta.tokens) for delta in deltas))
        assert [delta.usage for delta in deltas[:-1]] == [None, None]
        first = deltas[0].tokens[0]
        assert first.logprob == pytest.approx(_logprobs([]).of(first.id))
        assert [len(token.top) for token in deltas[0].tokens] == [2] * len(deltas[0].tokens)

    play(scene)


@pytest.mark.parametrize("states", [False, True])
def test_beams_share_what_is_computed(states: bool) -> None:
    async def scene(harness: EngineHarness) -> None:
        await searched(harness, asked())
        computed = sum(len(it.tokens) for it in harness.prefills) + sum(len(it.tokens) for it in harness.decodes)
        assert computed < len(PROMPT) + 3 * 6 * 8  # of whole texts it would be 30 to 36 tokens for each beam and place

    play(scene, states=states)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"stream": True}, "use_beam_search: not together with stream"),
        ({"constraint": Constraint(kind="json_object")}, "constraint: not together with use_beam_search"),
        ({"stop": ("x",)}, "stop: not together with use_beam_search"),
        ({"presence_penalty": 1.0}, "presence_penalty: not together"),
        ({"n": 5}, r"n: 5 beams are more than the 4 of a step \(slotBuckets\)"),
    ],
)
def test_what_is_refused(params: dict[str, Any], sentence: str) -> None:
    async def scene(harness: EngineHarness) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            await searched(harness, asked(**params))

    play(scene)
