"""The engine on the kernels of a CPU and of an NPU: texts are those of a model that reads them whole each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_core.config import SpeculativeOptions
from msx_llm import speculator
from msx_llm.draft_model import DraftModel
from msx_llm.speculation.ngram import NgramIndex
from msx_llm.step import UNREAD, Mixed
from msx_sdk.generation import Constraint
from tests.llm.fakes import ids, read, request
from tests.llm.kernels_under_test import (
    CHUNK,
    KINDS,
    VOCAB,
    KernelsHarness,
    KernelsUnderTest,
    Reference,
    kernels_under_test,
    make_model,
)

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

Scene = Callable[[KernelsHarness], Awaitable[None]]


@pytest.fixture(scope="module", params=[None, pytest.param(20, id="window", marks=pytest.mark.long)])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    ms.runtime.launch_blocking()
    return make_model(tmp_path_factory.mktemp("kernels") / "model", request.param)


@pytest.fixture(scope="module")
def reference(model: Path) -> Reference:
    return Reference(model, graphs=True)


@pytest.fixture(scope="module", params=KINDS)
def kernels(request: pytest.FixtureRequest, model: Path) -> Iterator[KernelsUnderTest]:
    with kernels_under_test(request.param, model, graphs=True) as made:
        yield made


@pytest.fixture(scope="module")
def second(kernels: KernelsUnderTest) -> Any:
    """Another runner of the same model, for drafts."""
    return kernels.make()


def play(scene: Scene, kernels: KernelsUnderTest, **options: Any) -> None:
    async def with_harness() -> None:
        async with KernelsHarness(kernels, **options) as harness:
            await scene(harness)
            stats = harness.engine.stats()
            assert (stats.running, stats.waiting, stats.requests, stats.blocks_used) == (0, 0, 0, 0)

    asyncio.run(with_harness())


async def answer(harness: KernelsHarness, prompt: list[int], count: int, **params: Any) -> Any:
    return await read(harness.engine.submit(request(prompt, count, **params)))


def tokens(first: int, count: int) -> list[int]:
    return [(first + 7 * place + place * place) % VOCAB for place in range(count)]


def test_prompts_in_chunks_beside_texts_that_run(kernels: KernelsUnderTest, reference: Reference) -> None:
    """The long prompt comes in three chunks, the others make tokens meanwhile."""
    prompts = [tokens(1, 5), tokens(2, 30), tokens(3, 150)]

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 8) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 8) for prompt in prompts]
        mixed = [[len(chunk.tokens) for chunk in step.chunks] for step in harness.runner.log if isinstance(step, Mixed)]
        assert any(1 in counts and max(counts) > 1 for counts in mixed) == kernels.mixes

    play(scene, kernels)


def test_a_prompt_in_chunks_behind_a_cached_prefix(kernels: KernelsUnderTest, reference: Reference) -> None:
    first = tokens(4, 140)
    second = [*first[:130], *tokens(9, 90)]

    async def scene(harness: KernelsHarness) -> None:
        await answer(harness, first, 2)
        last = await answer(harness, second, 6)
        assert last[-1].usage.cached == (128 if kernels.mixes else 130)  # whole blocks are shared
        assert ids(last) == reference.greedy(second, 6)

    play(scene, kernels)


def test_texts_of_one_request_share_its_prompt(kernels: KernelsUnderTest, reference: Reference) -> None:
    async def scene(harness: KernelsHarness) -> None:
        deltas = await answer(harness, tokens(5, 20), 6, n=3)
        assert [ids(deltas, index) for index in range(3)] == [reference.greedy(tokens(5, 20), 6)] * 3

    play(scene, kernels)


def test_texts_that_are_preempted_come_back(kernels: KernelsUnderTest, reference: Reference) -> None:
    """The last of three texts that outgrow their blocks must leave for a while."""
    prompts = [tokens(first, 120) for first in (11, 12, 13)]

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 20) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 20) for prompt in prompts]
        assert harness.engine.stats().preempted

    play(scene, kernels, pool=kernels.pool_of(3, 140))


def test_a_stop_token_and_a_stop_string_end_a_text(kernels: KernelsUnderTest, reference: Reference) -> None:
    text = reference.greedy(tokens(6, 9), 6)

    async def scene(harness: KernelsHarness) -> None:
        whole = "".join(delta.text for delta in await answer(harness, tokens(6, 9), 6))
        by_token = await answer(harness, tokens(6, 9), 30, stop_token_ids=(text[3],))
        assert (ids(by_token), by_token[-1].stop_reason) == (text[: text.index(text[3]) + 1], text[3])
        by_string = await answer(harness, tokens(6, 9), 30, stop=(whole[1:3],))
        assert "".join(delta.text for delta in by_string) == whole[: whole.index(whole[1:3])]
        assert by_string[-1].stop_reason == whole[1:3]

    play(scene, kernels)


def test_logprobs_of_prompt_and_text(kernels: KernelsUnderTest, reference: Reference) -> None:
    """The prompt is longer than a chunk, and its beginning is in the cache."""
    prompt = tokens(7, 70)
    text = reference.greedy(prompt, 4)
    logits = reference.logits([*prompt, *text])
    wide = logits.astype(np.float64)
    logprobs = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    bound = 3 * kernels.rounding * np.abs(logits).max()

    async def scene(harness: KernelsHarness) -> None:
        await answer(harness, prompt, 1)
        deltas = await answer(harness, prompt, 4, logprobs=3, prompt_logprobs=True)
        found = [*deltas[0].prompt_tokens, *(token for delta in deltas for token in delta.tokens)]
        assert [token.id for token in found] == [*prompt, *text]
        own = [logprobs[place, token] for place, token in enumerate([*prompt, *text][1:])]
        assert [token.logprob for token in found[1:]] == pytest.approx(own, abs=bound)
        best = np.sort(logprobs, axis=1)[:-1, :-4:-1]
        np.testing.assert_allclose([[it.logprob for it in token.top] for token in found[1:]], best, rtol=0, atol=bound)

    play(scene, kernels)


def test_penalties_and_biases(kernels: KernelsUnderTest, reference: Reference) -> None:
    prompt, first = tokens(8, 12), reference.greedy(tokens(8, 12), 1)[0]

    def adjust(logits: Any, text: list[int]) -> Any:
        counts = np.bincount(text, minlength=VOCAB)
        logits[first] -= 50
        return logits - 1.5 * counts - 0.5 * (counts > 0)

    async def scene(harness: KernelsHarness) -> None:
        asked = {"frequency_penalty": 1.5, "presence_penalty": 0.5, "logit_bias": {first: -50.0}}
        assert ids(await answer(harness, prompt, 10, **asked)) == reference.greedy(prompt, 10, adjust)

    play(scene, kernels)


def test_a_constraint_beside_texts_without(kernels: KernelsUnderTest, reference: Reference) -> None:
    choice = Constraint(kind="choice", value='["yes, please", "no"]')

    async def scene(harness: KernelsHarness) -> None:
        held, free = await asyncio.gather(
            answer(harness, tokens(2, 7), 30, constraint=choice, ignore_eos=False), answer(harness, tokens(3, 7), 9)
        )
        assert "".join(delta.text for delta in held) in ("yes, please", "no")
        assert held[-1].finish_reason == "eos"
        assert ids(free) == reference.greedy(tokens(3, 7), 9)

    play(scene, kernels)


def test_a_seed_draws_the_same_whatever_else_runs(kernels: KernelsUnderTest) -> None:
    async def scene(harness: KernelsHarness) -> None:
        asked = {"temperature": 1.0, "top_p": 0.9, "top_k": 40, "seed": 5}
        alone = await answer(harness, tokens(9, 10), 8, **asked)
        others = (answer(harness, tokens(place, 40), 12, temperature=1.0) for place in (1, 2))
        beside, *_ = await asyncio.gather(answer(harness, tokens(9, 10), 8, **asked), *others)
        assert ids(alone) == ids(beside)

    play(scene, kernels)


def test_a_device_chooses_what_the_host_would(kernels: KernelsUnderTest) -> None:
    """As long as no text of the step asks for log-probabilities. A text of one draws from its own numbers in order,
    wherever each token was chosen."""
    found: dict[bool, list[list[int]]] = {}

    async def scene(harness: KernelsHarness) -> None:
        plain = answer(harness, tokens(9, 10), 12, temperature=1.0, top_p=0.9, min_p=0.01, seed=5)
        greedy, scored = answer(harness, tokens(3, 20), 12), answer(harness, tokens(4, 20), 4, logprobs=1)
        found[chooses] = [ids(deltas) for deltas in await asyncio.gather(plain, greedy, scored)]
        mixed = [step for step in harness.runner.log if isinstance(step, Mixed)]
        ways = {bool(step.choices) for step in mixed}
        assert ways == ({True, False} if chooses else {False}) if kernels.mixes else not ways
        unread = any(chunk.tokens == (UNREAD,) for step in mixed for chunk in step.chunks)
        assert unread is (chooses and kernels.mixes), "steps start before the tokens of the last one are read"

    for chooses in (False, True):
        play(scene, kernels, chooses=chooses)
    assert found[True] == found[False]


def test_a_text_that_is_cancelled_leaves_the_others_as_they_are(
    kernels: KernelsUnderTest, reference: Reference
) -> None:
    async def scene(harness: KernelsHarness) -> None:
        left = harness.engine.submit(request(tokens(1, 20), 100))
        stays = asyncio.create_task(answer(harness, tokens(2, 20), 12))
        await anext(aiter(left))
        left.cancel()
        assert ids(await stays) == reference.greedy(tokens(2, 20), 12)

    play(scene, kernels)


def test_drafted_tokens_right_and_wrong(
    kernels: KernelsUnderTest, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a prompt in chunks: what was computed of wrong tokens is written over, and never seen."""
    prompts = [tokens(3, 21), tokens(4, 110)]
    texts = [reference.greedy(prompt, 16) for prompt in prompts]

    def draft(index: NgramIndex, said: list[int], most: int) -> list[int]:
        prompt, text = next(it for it in zip(prompts, texts, strict=True) if said[0] == it[0][0])
        made = len(said) - len(prompt)
        return [(token + (place % 5 == 4)) % VOCAB for place, token in enumerate(text)][made:][: max(most, 0)]

    monkeypatch.setattr(NgramIndex, "draft", draft)
    monkeypatch.setattr(speculator, "TRIAL", 1e9)

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 16, logprobs=0) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == texts
        stats = harness.engine.stats()
        assert 3 < stats.accepted < stats.drafted

    play(scene, kernels, speculative=SpeculativeOptions(tokens=3))


@pytest.mark.parametrize("wrong", [0, 1])
def test_drafts_of_a_small_model(
    kernels: KernelsUnderTest, second: Any, reference: Reference, monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    """Which is as large here, on the same kernels, and has a cache of its own; or says something else."""
    prompts = [tokens(3, 21), tokens(4, 110)]
    small = DraftModel(second, CHUNK)
    if wrong:
        plain = small._likeliest
        monkeypatch.setattr(small, "_likeliest", lambda rows: [(it + 1) % VOCAB for it in plain(rows)])
    monkeypatch.setattr(speculator, "TRIAL", 1e9)

    async def scene(harness: KernelsHarness) -> None:
        found = await asyncio.gather(*(answer(harness, prompt, 16) for prompt in prompts))
        assert [ids(deltas) for deltas in found] == [reference.greedy(prompt, 16) for prompt in prompts]
        stats = harness.engine.stats()
        assert stats.drafted > 3
        assert (stats.accepted == stats.drafted) != bool(wrong)

    options = SpeculativeOptions(method="draft", tokens=3)
    play(scene, kernels, speculative=options, draft_model=small)
