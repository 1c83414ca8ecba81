"""Short prompts in one step: who is in it, and who waits."""

from __future__ import annotations

from typing import cast

import pytest

from msx_llm.pace import PrefillPace
from msx_llm.prompt_groups import PromptGroups
from msx_llm.sampling import Sampler
from msx_llm.sequence import TokenSequence
from msx_llm.step import Decode, Prefill, Prefills
from tests.llm.test_scheduler import Stage, kinds

MOST, BLOCK, CONTEXTS = 512, 4, (256, 1024)


def groups(texts: tuple[int, ...] = (2, 4, 16)) -> PromptGroups:
    return PromptGroups(texts, CONTEXTS, PrefillPace((32, 128), MOST), MOST, BLOCK)


def prompt(length: int, first: int = 0, scored: bool = False) -> TokenSequence:
    return TokenSequence([first, *range(length - 1)], (0, first, 0), 1000, cast(Sampler, None), scored=scored)


def prompts(*lengths: int) -> list[TokenSequence]:
    return [prompt(length, first) for first, length in enumerate(lengths)]


@pytest.mark.parametrize(
    ("lengths", "together"),
    [
        ((20,), 1),
        ((20, 30), 2),
        ((20, 30, 10), 3),
        ((20,) * 5, 4),  # a step of 16 would cost more than two
        ((20,) * 14, 14),
        ((100, 20), 1),
        ((100,) * 9, 4),  # as many as fit the largest step
        ((400, 20), 1),
    ],
)
def test_as_many_as_cost_less_together(lengths: tuple[int, ...], together: int) -> None:
    filling = prompts(*lengths)
    assert groups().chosen(filling, MOST) == filling[:together]


def test_those_of_other_sizes_wait() -> None:
    filling = prompts(20, 100, 30)
    assert groups().chosen(filling, MOST) == [filling[0], filling[2]]


def behind(cached: int, left: int, first: int) -> TokenSequence:
    """A prompt whose beginning is in the cache."""
    found = prompt(cached + left, first)
    found.computed = cached
    return found


def test_short_ends_of_long_prompts_have_steps_of_their_own() -> None:
    """Graphs of groups attend to the first positions only, and the whole group would be computed one by one."""
    filling = [prompt(20, 1), behind(300, 20, 2), prompt(20, 3), behind(200, 20, 4)]
    assert groups().chosen(filling, MOST) == [filling[0], filling[2], filling[3]]
    assert groups().chosen(filling[1:], MOST) == [filling[1]]
    assert not groups().takes(filling[:2], prompt(20, 5))
    assert groups().takes(filling[::2], prompt(20, 5))


def test_no_more_than_there_is_room_for() -> None:
    filling = prompts(20, 20, 20, 20)
    assert groups().chosen(filling, 64) == filling[:2]
    assert groups().chosen(filling, 63) == filling[:1]


def test_logits_of_a_whole_prompt_and_other_priorities_have_steps_of_their_own() -> None:
    scored, plain, urgent = prompt(20, scored=True), prompt(20, 1), prompt(20, 2)
    urgent.order = (-1, 2, 0)
    assert groups().chosen([scored, plain], MOST) == [scored]
    assert groups().chosen([plain, scored, urgent], MOST) == [plain]
    assert not groups().takes([plain], scored)
    assert not groups().takes([plain], urgent)


def test_without_such_steps_there_are_no_groups() -> None:
    filling = prompts(20, 20)
    assert groups(()).chosen(filling, MOST) == filling[:1]
    assert not groups(()).takes(filling[:1], filling[1])


def test_a_prompt_joins_those_that_were_admitted() -> None:
    admitted, another = prompts(20, 20), prompt(20, 9)
    assert groups().takes(admitted, another)
    assert not groups().takes(prompts(*(20,) * 16), another)
    assert not groups().takes(admitted, prompt(400, 9))


def test_a_prompt_waits_for_one_that_computes_its_beginning() -> None:
    first, second = prompt(40), prompt(30)
    assert not groups().takes([first], second)
    first.computed = 28  # the next block is another one
    second.tokens[29] = 99
    assert groups().takes([first], second)


def test_short_prompts_that_come_together_are_one_step() -> None:
    stage = Stage(groups=True)
    texts = [stage.add([place, 1, 2], limit=5)[0] for place in range(4)]
    assert kinds(stage.until(texts[-1])) == "PD"
    step = stage.log[0].step
    assert isinstance(step, Prefills)
    assert [chunk.tokens for chunk in step.chunks] == [(place, 1, 2) for place in range(4)]
    assert all(len(text.tokens) == 5 for text in texts)


def test_texts_of_one_request_share_their_prompt() -> None:
    stage = Stage(groups=True)
    texts = stage.add([1, 2, 3, 4, 5, 6], limit=8, texts=3)
    stage.until(texts[-1])
    assert isinstance(stage.log[0].step, Prefill)
    assert len(stage.log[0].step.tokens) == 6


def test_while_others_decode_a_group_costs_no_more_than_its_room() -> None:
    stage = Stage(groups=True)
    stage.add([9])
    stage.step()
    stage.scheduler.pace.note(Decode((0,), (1,), (0,)), 0.010)
    stage.scheduler.pace.note(Prefill(0, 0, tuple(range(16))), 0.640)
    for place in range(3):
        stage.add([place, 1, 2], limit=4)
    assert kinds([stage.step() for _ in range(6)]) == "PDPDPD"
