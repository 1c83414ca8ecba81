"""Which steps tell the device the tokens of a text."""

from __future__ import annotations

from msx_llm.choosing import DeviceChoices
from msx_llm.sampling import Sampler
from msx_llm.sequence import TokenSequence
from msx_llm.step import Mixed, Recount, TokenChunk
from msx_llm.step_plan import StepPlan
from msx_sdk.generation import SamplingParams

PROMPT = [4, 4, 2]
PARAMS = SamplingParams(temperature=0.0, presence_penalty=1.0, repetition_penalty=1.5)


def text_of(params: SamplingParams = PARAMS) -> TokenSequence:
    return TokenSequence(list(PROMPT), (0, 0, 0), 20, Sampler(params, PROMPT, 8, frozenset(), 1))


def recounts(choices: DeviceChoices, text: TokenSequence, slot: int, token: int | None) -> list[Recount]:
    """Recounts of a step for the text at this slot, which chooses the token; None: it only starts."""
    text.slot, text.computed = slot, len(text.tokens) - 1
    plan = StepPlan(Mixed((TokenChunk(slot, text.computed, (text.tokens[-1],)),)), [text])
    choices.order(plan)
    if token is not None:
        text.tokens.append(text.sampler.take(token).token)
    assert isinstance(plan.step, Mixed)
    assert len(plan.step.choices) == 1
    return [step for step in plan.step.before if isinstance(step, Recount)]


def test_a_text_is_counted_when_it_comes_to_a_slot() -> None:
    choices, text = DeviceChoices(), text_of()
    assert recounts(choices, text, 1, 2) == [Recount(1, (2, 4), (1, 1))]
    assert recounts(choices, text, 1, 5) == []
    assert recounts(choices, text, 2, 5) == [Recount(2, (2, 4, 5), (2, 1, 2))]
    assert recounts(choices, text, 1, 7) == [Recount(1, (2, 4, 5), (2, 1, 4))], "what it has there is old"
    assert recounts(choices, text, 1, None) == []


def test_a_slot_that_has_another_text() -> None:
    choices, text, other = DeviceChoices(), text_of(), text_of()
    assert recounts(choices, text, 1, 3)
    assert recounts(choices, other, 1, None)
    assert recounts(choices, text, 1, None)


def test_a_text_without_penalties_is_not_counted() -> None:
    choices, text = DeviceChoices(), text_of()
    recounts(choices, text, 1, 3)
    assert recounts(choices, text_of(SamplingParams(temperature=0.5)), 1, None) == []
    assert recounts(choices, text, 1, None) == []
