"""Drafts for texts that have states, on a CPU: they change how many steps a text takes, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msx_core.config import SpeculativeOptions
from msx_llm import speculator
from msx_llm.speculation.ngram import NgramIndex
from msx_llm.state_pool import StatePool
from msx_llm.step import Decode
from tests.llm.fakes import ids
from tests.llm.kernels_under_test import EXACT, SLOTS, KernelsHarness, KernelsUnderTest, Reference, shape
from tests.llm.runners import make_runner
from tests.llm.test_states_engine import Scene, answer, make_states, play, tokens

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ms.runtime.launch_blocking()
    return make_states(tmp_path_factory.mktemp("states") / "model")


@pytest.fixture(scope="module")
def reference(model: Path) -> Reference:
    return Reference(model, graphs=True)


@pytest.fixture(scope="module")
def kernels(model: Path) -> KernelsUnderTest:
    make = partial(make_runner, "states", shape(), folder=model, graphs=True, drafts=True)
    return KernelsUnderTest(make(), EXACT, 16, make)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[list[int], list[int], int]]:
    """By the first token of a prompt: it, the text behind it, and every how many tokens its drafts are wrong."""
    known: dict[int, tuple[list[int], list[int], int]] = {}

    def draft(index: NgramIndex, said: Sequence[int], most: int) -> list[int]:
        prompt, text, wrong = known[said[0]]
        right = list(enumerate(text))[len(said) - len(prompt) :][: max(most, 0)]
        return [token + (place % wrong == wrong - 1) for place, token in right]

    monkeypatch.setattr(NgramIndex, "draft", draft)
    monkeypatch.setattr(speculator, "TRIAL", 1e9)
    return known


def drafted(scene: Scene, kernels: KernelsUnderTest, **options: Any) -> None:
    play(scene, kernels, speculative=SpeculativeOptions(tokens=3), **options)


def learn(texts: dict[int, Any], reference: Reference, prompts: Sequence[list[int]], count: int) -> list[list[int]]:
    """Each text's drafts are wrong at other places; those of the first one nowhere."""
    found = [reference.greedy(prompt, count) for prompt in prompts]
    for place, (prompt, text) in enumerate(zip(prompts, found, strict=True)):
        texts[prompt[0]] = prompt, text, (99, 5, 2, 1)[place % 4]
    return found


@pytest.mark.parametrize("wrong", [99, 5, 3, 2, 1])
def test_drafts_that_are_wrong_now_and_then(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any], wrong: int
) -> None:
    """Texts go on behind the first, the second, and the last drafted token, and behind none."""
    prompt = tokens(3, 40)
    text = reference.greedy(prompt, 20)
    texts[prompt[0]] = prompt, text, wrong

    async def scene(harness: KernelsHarness) -> None:
        assert ids(await answer(harness, prompt, 20)) == text
        stats = harness.engine.stats()
        assert stats.drafted > 3
        assert (stats.accepted == 0) == (wrong == 1)
        assert (stats.accepted == stats.drafted) == (wrong == 99)
        steps = [step for step in harness.runner.log if isinstance(step, Decode)]
        assert len(steps) == 19 - stats.accepted

    drafted(scene, kernels)


def test_several_texts_beside_a_prompt_in_chunks(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]
) -> None:
    prompts = [tokens(3, 21), tokens(4, 30), tokens(5, 150)]
    wanted = learn(texts, reference, prompts, 24)

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 24) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == wanted
        assert 3 < harness.engine.stats().accepted < harness.engine.stats().drafted

    drafted(scene, kernels)


def test_texts_that_are_preempted_come_back(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]
) -> None:
    prompts, block = [tokens(first, 120) for first in (11, 12, 13)], kernels.runner.limits.block
    wanted = learn(texts, reference, prompts, 20)

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 20) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == wanted
        assert harness.engine.stats().preempted
        assert harness.engine.stats().accepted

    drafted(scene, kernels, pool=StatePool(SLOTS, (3 * -(-140 // block) - 1) * block, block))


def test_the_next_turn_goes_on_where_a_state_is(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]
) -> None:
    """Behind the first token of the last step: what was drafted is computed again."""
    prompt = tokens(4, 70)
    (text,) = learn(texts, reference, [prompt], 17)

    async def scene(harness: KernelsHarness) -> None:
        assert ids(await answer(harness, prompt, 17)) == text
        again = [*prompt, *text, *tokens(9, 20)]
        (wanted,) = learn(texts, reference, [again], 12)
        deltas = await answer(harness, again, 12)
        assert ids(deltas) == wanted
        assert len(prompt) < deltas[-1].usage.cached < len(prompt) + len(text)

    drafted(scene, kernels)


def test_texts_that_part_find_the_state_that_was_kept(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]
) -> None:
    async def scene(harness: KernelsHarness) -> None:
        cached = []
        for first in (11, 12, 13, 14):
            prompt = [*tokens(4, 70), *tokens(first, 15)]
            (wanted,) = learn(texts, reference, [prompt], 12)
            deltas = await answer(harness, prompt, 12)
            assert ids(deltas) == wanted
            cached.append(deltas[-1].usage.cached)
        assert cached == [0, 0, 70, 70]

    drafted(scene, kernels)


def test_a_state_that_an_earlier_text_kept_is_not_that_of_a_draft(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]
) -> None:
    """Slots have kept states behind 70 tokens, when other texts go on behind a drafted token there."""

    async def scene(harness: KernelsHarness) -> None:
        beginnings = [[*tokens(4, 70), *tokens(first, 15)] for first in range(11, 12 + SLOTS)]
        for prompt in [*beginnings, *(tokens(first, 66) for first in range(20, 20 + SLOTS))]:
            (wanted,) = learn(texts, reference, [prompt], 12)
            assert ids(await answer(harness, prompt, 12)) == wanted

    drafted(scene, kernels)


def test_texts_of_one_request(kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]) -> None:
    prompt = tokens(5, 50)
    (wanted,) = learn(texts, reference, [prompt], 15)

    async def scene(harness: KernelsHarness) -> None:
        deltas = await answer(harness, prompt, 15, n=3)
        assert [ids(deltas, index) for index in range(3)] == [wanted] * 3

    drafted(scene, kernels)


def test_by_a_seed_the_same_text_as_without(
    kernels: KernelsUnderTest, reference: Reference, texts: dict[int, Any]
) -> None:
    """Drafts are those of a greedy text, of which a drawn one takes some."""
    prompt = tokens(6, 30)
    learn(texts, reference, [prompt], 24)
    told: list[list[int]] = []

    async def scene(harness: KernelsHarness) -> None:
        told.append(ids(await answer(harness, prompt, 20, temperature=0.5, seed=11, top_p=0.9)))

    play(scene, kernels)
    drafted(scene, kernels)
    assert told[0] == told[1]


def test_texts_are_those_without_room_for_drafts(kernels: KernelsUnderTest, reference: Reference) -> None:
    prompts = [tokens(first, 33) for first in range(4)]

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 10) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 10) for prompt in prompts]

    drafted(scene, kernels)
