from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from msx_llm import lane
from msx_llm.limits import EngineLimits
from msx_llm.sampling import Constraints
from msx_llm.step import CopyPositions, Decode, Prefill, Step, Stretch
from msx_sdk.errors import InvalidInput, PredictionError
from msx_sdk.generation import Constraint, GenerateDelta, GenerateRequest
from tests.llm.fakes import (
    END,
    VOCAB,
    EngineHarness,
    after,
    alone,
    ids,
    limits,
    logits_of,
    make_tokenizer,
    read,
    request,
)

Scene = Callable[[EngineHarness], Awaitable[None]]


def play(scene: Scene, shape: EngineLimits | None = None, **options: Any) -> None:
    async def with_harness() -> None:
        async with EngineHarness(shape, **options) as harness:
            await scene(harness)

    asyncio.run(with_harness())


async def answer(harness: EngineHarness, asked: GenerateRequest) -> list[GenerateDelta]:
    return await read(harness.engine.submit(asked))


def text_of(deltas: list[GenerateDelta], index: int = 0) -> str:
    return "".join(delta.text for delta in deltas if delta.index == index)


def prompt_that_ends(within: int = 12) -> tuple[list[int], list[int]]:
    """One whose greedy text comes to its end after a few tokens, and that text."""
    for first in range(1000):
        prompt = [first % 256, first // 256, 5]
        text = alone(prompt, within, eos=True)
        if text[-1] == END and len(text) > 3:
            return prompt, text
    raise AssertionError


def test_a_text_is_that_of_the_model() -> None:
    async def scene(harness: EngineHarness) -> None:
        assert ids(await answer(harness, request(range(5), 8))) == alone(range(5), 8)
        assert harness.idle()

    play(scene)


def test_prompts_join_the_running_batch_and_leave_it() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await asyncio.gather(*(answer(harness, request([place, 7], 4 + 4 * place)) for place in range(4)))
        assert [ids(it) for it in deltas] == [alone([place, 7], 4 + 4 * place) for place in range(4)]
        assert [len(step.slots) for step in harness.decodes][-8:] == [2, 2, 2, 2, 1, 1, 1, 1]

    play(scene)


def test_a_text_prompt_is_tokenized() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request("héllo", 3))
        assert deltas[-1].usage is not None
        assert deltas[-1].usage.prompt == 6
        assert deltas[-1].usage.completion == 3

    play(scene)


@pytest.mark.parametrize("paged", [False, True])
def test_texts_of_a_request_share_its_prompt(paged: bool) -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(range(9), 3, n=3))
        assert [ids(deltas, index) for index in range(3)] == [alone(range(9), 3)] * 3
        assert sum(len(step.tokens) for step in harness.prefills) == 9
        copies = [step.length for step in harness.runner.log if isinstance(step, CopyPositions)]
        assert copies == ([] if paged else [8, 8])
        assert deltas[-1].usage is not None
        assert deltas[-1].usage.completion == 9

    play(scene, paged=paged)


def test_only_the_last_delta_has_the_usage_and_each_text_a_reason() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(range(9), 3, n=2))
        assert [delta.usage is not None for delta in deltas] == [False] * 5 + [True]
        assert [delta.index for delta in deltas if delta.finish_reason == "length"] == [0, 1]

    play(scene)


def test_the_best_texts_are_those_with_the_highest_mean_logprob() -> None:
    async def scene(harness: EngineHarness) -> None:
        params: dict[str, Any] = {"temperature": 1.0, "seed": 11}
        every = await answer(harness, request([3, 1], 6, n=5, logprobs=0, stream=False, **params))
        ranked = sorted(every, key=lambda it: -np.mean([token.logprob or 0.0 for token in it.tokens]))
        best = await answer(harness, request([3, 1], 6, n=2, best_of=5, stream=False, **params))
        assert [it.index for it in best] == [0, 1]
        assert [ids([it], it.index) for it in best] == [ids([it], it.index) for it in ranked[:2]]
        assert best[0].tokens[0].logprob is None
        assert best[-1].usage is not None
        assert best[-1].usage.completion == 30

    play(scene)


def test_the_end_of_the_model() -> None:
    prompt, text = prompt_that_ends()

    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(prompt, 30, ignore_eos=False))
        assert ids(deltas) == text
        assert deltas[-1].finish_reason == "eos"
        assert deltas[-1].tokens[0].special
        assert "<|end|>" not in text_of(deltas)
        assert len(ids(await answer(harness, request(prompt, 30)))) == 30

    play(scene)


def test_the_end_waits_for_min_tokens() -> None:
    prompt, text = prompt_that_ends()

    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(prompt, 30, ignore_eos=False, min_tokens=len(text)))
        assert ids(deltas)[: len(text) - 1] == text[:-1]
        assert len(ids(deltas)) > len(text)

    play(scene)


@pytest.mark.parametrize(("keep", "length"), [(False, 3), (True, 4)])
def test_stop_tokens(keep: bool, length: int) -> None:
    async def scene(harness: EngineHarness) -> None:
        text = alone([5, 6], 4)
        deltas = await answer(harness, request([5, 6], 30, stop_token_ids=(text[3],), keep_stop=keep))
        assert ids(deltas) == text
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == ("stop", text[3])
        assert text_of(deltas).encode(errors="replace") == decoded(text[:length])

    play(scene)


def decoded(tokens: list[int]) -> bytes:
    return make_tokenizer().decode(tokens).encode(errors="replace")


def ascii_prompt(count: int) -> tuple[list[int], str]:
    """One whose greedy text begins with so many letters of ASCII."""
    for first in range(256 * 256):
        prompt = [first % 256, first // 256]
        text = decoded(alone(prompt, count)).decode()
        if text.isascii() and text.isprintable() and len(text) == count:
            return prompt, text
    raise AssertionError


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_stop_strings_end_a_text_and_never_leak(keep: bool, stream: bool) -> None:
    prompt, text = ascii_prompt(3)

    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(prompt, 30, stop=(text[1:],), keep_stop=keep, stream=stream))
        assert text_of(deltas) == (text if keep else text[0])
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == ("stop", text[1:])
        assert ids(deltas) == alone(prompt, 3)
        assert harness.idle()

    play(scene)


@pytest.mark.parametrize("stream", [False, True])
def test_what_might_have_become_a_stop_string_is_shown_at_the_end(stream: bool) -> None:
    prompt, text = ascii_prompt(3)

    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(prompt, 3, stop=(text[1:] + "!",), stream=stream))
        assert text_of(deltas) == text
        assert deltas[-1].finish_reason == "length"

    play(scene)


def test_a_text_that_may_be_cut_ends_where_the_context_does() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(range(60), 128_000, fit_context=True, ignore_eos=True))
        assert (len(ids(deltas)), deltas[-1].finish_reason) == (4, "length")

    play(scene)


def test_a_text_may_fill_the_context() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(range(10), None))
        assert len(ids(deltas)) == 64 - 10
        assert deltas[-1].finish_reason == "length"

    play(scene)


def some_constraints() -> Constraints:
    tokenizer = make_tokenizer()
    return Constraints(tokenizer.to_json(), tokenizer.eos, VOCAB)


@pytest.mark.parametrize("stream", [False, True])
def test_a_constrained_text_is_whole_and_ends_by_itself(stream: bool) -> None:
    choice = Constraint(kind="choice", value='["yes, please", "no"]')

    async def scene(harness: EngineHarness) -> None:
        asked = request([5, 6], 30, n=2, constraint=choice, ignore_eos=False, temperature=1.0, seed=1, stream=stream)
        deltas = await answer(harness, asked)
        assert {text_of(deltas, index) for index in range(2)} <= {"yes, please", "no"}
        assert [delta.finish_reason for delta in deltas if delta.finish_reason] == ["eos"] * 2
        assert harness.idle()

    play(scene, constraints=some_constraints())


def test_a_constraint_that_cannot_be_kept_is_refused() -> None:
    asked = request([1], constraint=Constraint(kind="regex", value="("))

    async def scene(harness: EngineHarness) -> None:
        with pytest.raises(InvalidInput, match="constraint: "):
            harness.engine.submit(asked)
        assert harness.idle()

    play(scene, constraints=some_constraints())
    play(scene)


def test_without_streaming_each_text_is_one_delta() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(range(10), 5, n=2, stream=False))
        assert [ids([delta], delta.index) for delta in deltas] == [alone(range(10), 5)] * 2
        assert text_of(deltas).encode(errors="replace") == decoded(alone(range(10), 5))

    play(scene)


def test_logprobs_are_those_of_the_model() -> None:
    async def scene(harness: EngineHarness) -> None:
        first = (await answer(harness, request([4, 2], 1, logprobs=2)))[0].tokens[0]
        expected = log_softmax(logits_of(after(after(0, 4), 2)))
        best = np.argsort(-expected)[:2].tolist()
        assert first.logprob == pytest.approx(expected[first.id], abs=1e-5)
        assert [it.id for it in first.top] == best
        assert [it.logprob for it in first.top] == pytest.approx(expected[best], abs=1e-5)
        assert first.bytes

    play(scene)


@pytest.mark.parametrize("length", [1, 2, 16, 17, 40])
def test_logprobs_of_a_prompt(length: int) -> None:
    prompt, expected, state = list(range(50, 50 + length)), [None], 0
    for token, following in pairwise(prompt):
        state = after(state, token)
        expected.append(log_softmax(logits_of(state))[following])

    async def scene(harness: EngineHarness) -> None:
        await answer(harness, request(prompt, 1))  # what is in the cache has no logits
        for stream in (True, False):
            deltas = await answer(harness, request(prompt, 3, n=2, prompt_logprobs=True, logprobs=2, stream=stream))
            assert [token.id for token in deltas[0].prompt_tokens] == prompt
            assert [token.logprob for token in deltas[0].prompt_tokens][1:] == pytest.approx(expected[1:], abs=1e-5)
            assert deltas[0].prompt_tokens[0].logprob is None
            assert [len(token.top) for token in deltas[0].prompt_tokens] == [0, *[2] * (len(prompt) - 1)]
            assert all(token.top[0].logprob >= (token.logprob or 0) for token in deltas[0].prompt_tokens[1:])
            assert not any(delta.prompt_tokens for delta in deltas[1:])
            assert ids(deltas) == ids(deltas, 1) == alone(prompt, 3)

    play(scene)


def test_a_prompt_has_its_own_number_of_likely_tokens() -> None:
    async def scene(harness: EngineHarness) -> None:
        prompt, state = [50, 51, 52], 0
        (delta,) = await answer(harness, request(prompt, 1, prompt_logprobs=True, prompt_top=3, stream=False))
        assert [len(token.top) for token in delta.prompt_tokens] == [0, 3, 3]
        assert [token.logprob for token in delta.tokens] == [None]
        for token, following in zip(prompt, delta.prompt_tokens[1:], strict=False):
            state = after(state, token)
            assert following.rank == 1 + int((logits_of(state) > logits_of(state)[following.id]).sum())
        both = await answer(harness, request(prompt, 1, prompt_logprobs=True, prompt_top=1, logprobs=2))
        assert [len(token.top) for token in both[0].prompt_tokens] == [0, 2, 2]

    play(scene)


def log_softmax(logits: Any) -> Any:
    return logits - np.log(np.exp(logits.astype(np.float64)).sum())


def test_a_seed_draws_the_same_whatever_else_runs() -> None:
    async def scene(harness: EngineHarness) -> None:
        asked = request([9, 9], 12, temperature=1.0, seed=5)
        quiet = await answer(harness, asked)
        busy, *_ = await asyncio.gather(
            answer(harness, asked), *(answer(harness, request([place], 20, temperature=2.0)) for place in range(3))
        )
        assert ids(quiet) == ids(busy)
        assert quiet[-1].seed == 5

    play(scene)


def test_the_seed_of_a_sampled_text_makes_it_again() -> None:
    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request([9, 9], 12, n=3, temperature=1.0))
        seeds = {delta.index: delta.seed for delta in deltas if delta.finish_reason}
        for index, seed in seeds.items():
            assert ids(await answer(harness, request([9, 9], 12, temperature=1.0, seed=seed))) == ids(deltas, index)
        assert len({tuple(ids(deltas, index)) for index in range(3)}) == 3

    play(scene)


def test_a_greedy_text_has_no_seed() -> None:
    async def scene(harness: EngineHarness) -> None:
        assert (await answer(harness, request([9, 9], 2, seed=3)))[-1].seed is None

    play(scene)


@pytest.mark.parametrize("paged", [False, True])
def test_usage_says_what_was_in_the_cache(paged: bool) -> None:
    async def scene(harness: EngineHarness) -> None:
        await answer(harness, request(range(12), 3))
        last = (await answer(harness, request([*range(10), 99], 3)))[-1]
        assert last.usage is not None
        assert last.usage.cached == (8 if paged else 10)

    play(scene, paged=paged)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (request([]), "prompt: it has no tokens; give at least one"),
        (request([VOCAB]), "prompt: 260 is not a token of this model, which has 260"),
        (request([0, -1]), "prompt: -1 is not a token of this model, which has 260"),
        (GenerateRequest(), "prompt: expected a text, or token ids"),
        (
            request(range(64)),
            "prompt: This model's maximum context length is 63 tokens (maxInputTokens); the prompt has 64. Input "
            "tokens exceed the configured limit: shorten or truncate it.",
        ),
        (
            request(range(60), 5),
            "max_tokens: This model's maximum context length is 64 tokens (maxTotalTokens); 60 of the prompt and 5 "
            "to be generated are 65. At most 4 can be generated.",
        ),
        (request([1], 5, min_tokens=6), "min_tokens: 6 is more than max_tokens, 5"),
        (request([1], n=3, best_of=2), "best_of: 2 is less than n, 3"),
        (
            request([1], n=1, best_of=2),
            "best_of: the best 1 of 2 texts cannot be streamed; set stream to false",
        ),
        (request([1], seed=1 << 64), "seed: 18446744073709551616 is not below 2**64"),
    ],
)
def test_what_does_not_fit_is_refused(asked: GenerateRequest, sentence: str) -> None:
    async def scene(harness: EngineHarness) -> None:
        with pytest.raises(InvalidInput) as refused:
            harness.engine.submit(asked)
        assert str(refused.value) == sentence
        assert harness.idle()

    play(scene)


def test_truncate_keeps_the_end_of_a_prompt() -> None:
    async def scene(harness: EngineHarness) -> None:
        asked = request(range(100), 4)
        asked.truncate = 5
        assert ids(await answer(harness, asked)) == alone(range(95, 100), 4)

    play(scene)


def test_too_many_requests_are_refused_at_once() -> None:
    async def scene(harness: EngineHarness) -> None:
        first = harness.engine.submit(request([1], 4))
        second = harness.engine.submit(request([2], 4))
        with pytest.raises(PredictionError, match="2 requests are in progress, as many as maxConcurrent") as refused:
            harness.engine.submit(request([3], 4))
        assert refused.value.status == 429
        first.cancel()
        third = harness.engine.submit(request([3], 4))
        assert ids(await read(second)) == alone([2], 4)
        assert ids(await read(third)) == alone([3], 4)

    play(scene, limits(most=2))


def test_a_client_that_leaves_frees_its_slot_before_the_next_step() -> None:
    async def scene(harness: EngineHarness) -> None:
        stays, leaves = harness.engine.submit(request([1], 20)), harness.engine.submit(request([2], 20))
        waits = harness.engine.submit(request([3], 4))
        while not isinstance(step := await harness.steps.release(), Decode) or len(step.slots) < 2:
            pass
        leaves.cancel()
        assert harness.engine.stats().running == 1
        assert harness.engine.stats().blocks_used == 1
        await harness.steps.release()  # had begun
        assert isinstance(await harness.steps.release(), Decode | Prefill)
        assert harness.engine.stats().running == 2
        assert await anext(leaves, None) is None
        harness.steps.open()
        assert ids(await read(stays)) == alone([1], 20)
        assert ids(await read(waits)) == alone([3], 4)
        assert harness.idle()

    play(scene, limits(slots=2), gated=True)


def test_a_request_that_waits_may_leave() -> None:
    async def scene(harness: EngineHarness) -> None:
        runs, waits = harness.engine.submit(request([1], 6)), harness.engine.submit(request([2], 6))
        await harness.steps.release()
        with waits:
            assert harness.engine.stats().waiting == 1
        assert harness.engine.stats().waiting == 0
        harness.steps.open()
        assert ids(await read(runs)) == alone([1], 6)
        assert await read(waits) == []

    play(scene, limits(slots=1), gated=True)


def test_a_deadline_ends_a_request_wherever_it_is() -> None:
    async def scene(harness: EngineHarness) -> None:
        runs = harness.engine.submit(request([1], None), deadline=time.monotonic() + 0.01)
        waits = harness.engine.submit(request([2], 6), deadline=time.monotonic() + 0.01)
        await harness.steps.release()
        for handle, made in ((runs, 1), (waits, 0)):
            with pytest.raises(PredictionError) as failed:
                await read(handle)
            assert failed.value.status == 504
            assert failed.value.message == f"The request's time was up (tokens made: {made})."
        assert harness.idle()

    play(scene, limits(slots=1), gated=True)


def test_a_step_that_raises_fails_only_its_own_texts() -> None:
    def fails(step: Step) -> Exception | None:
        return RuntimeError("kernel\nlaunch failed") if isinstance(step, Prefill) and 66 in step.tokens else None

    async def scene(harness: EngineHarness) -> None:
        harness.runner.fails = fails
        good, bad = harness.engine.submit(request([1], 20)), harness.engine.submit(request([66, 3], 5, n=2))
        with pytest.raises(PredictionError) as failed:
            await read(bad)
        assert failed.value.status == 503
        expected = "Prediction failed in a prefill step of 2 tokens: RuntimeError: kernel launch failed"
        assert failed.value.message == expected
        assert ids(await read(good)) == alone([1], 20)
        assert ids(await answer(harness, request([3, 66][:1], 5))) == alone([3], 5)
        assert harness.idle()
        assert harness.failures == []

    play(scene)


def test_memory_that_ran_out_has_a_status_of_its_own() -> None:
    async def scene(harness: EngineHarness) -> None:
        errors = iter([RuntimeError("Out of memory on device 0")])
        harness.runner.fails = lambda step: next(errors, None)
        with pytest.raises(PredictionError, match="Out of resources in a prefill step") as failed:
            await answer(harness, request([1, 2], 3))
        assert failed.value.status == 507
        assert ids(await answer(harness, request([1, 2], 3))) == alone([1, 2], 3)

    play(scene)


@pytest.mark.parametrize("paged", [False, True])
def test_a_runner_that_works_no_more_fails_everything(paged: bool) -> None:
    async def scene(harness: EngineHarness) -> None:
        handles = [harness.engine.submit(request([place], 30)) for place in range(6)]
        assert await anext(handles[0])
        harness.runner.fails = lambda step: RuntimeError("device lost")
        for handle in handles:
            with pytest.raises(PredictionError, match="RuntimeError: device lost"):
                await read(handle)
        assert harness.failures == ["Prediction failed: the model has stopped working: RuntimeError: device lost"]
        assert harness.engine.failure == harness.failures[0]
        with pytest.raises(PredictionError, match="the model has stopped working") as refused:
            harness.engine.submit(request([1]))
        assert refused.value.status == 503
        assert harness.idle()

    play(scene, paged=paged)


def test_nothing_of_a_failed_step_is_reused() -> None:
    async def scene(harness: EngineHarness) -> None:
        prompt = list(range(30))
        errors: list[Exception | None] = [None, RuntimeError("second chunk")]
        harness.runner.fails = lambda step: errors.pop(0) if errors else None
        with pytest.raises(PredictionError):
            await answer(harness, request(prompt, 4))
        last = (await answer(harness, request(prompt, 4)))[-1]
        assert last.usage is not None
        assert last.usage.cached == 0

    play(scene)


def test_a_text_that_cannot_be_sampled_fails_alone() -> None:
    async def scene(harness: EngineHarness) -> None:
        good, bad = harness.engine.submit(request([1], 10)), harness.engine.submit(request([2, 3], 10, n=2))
        harness.runner.poison = alone([2, 3], 3)[2]
        assert harness.runner.poison not in alone([1], 10)
        with pytest.raises(PredictionError, match="not finite"):
            await read(bad)
        assert ids(await read(good)) == alone([1], 10)
        assert harness.idle()

    play(scene)


def test_sampling_that_breaks_down_fails_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(samplers: object, logits: object) -> None:
        raise IndexError("a bug")

    async def scene(harness: EngineHarness) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(lane, "choose_all", broken)
            with pytest.raises(PredictionError, match="Prediction failed in sampling: IndexError: a bug"):
                await answer(harness, request([1, 2], 3))
        assert ids(await answer(harness, request([1, 2], 3))) == alone([1, 2], 3)
        assert harness.idle()

    play(scene)


def test_closing_fails_what_runs_and_takes_nothing_more() -> None:
    async def scene(harness: EngineHarness) -> None:
        handles = [harness.engine.submit(request([place], 30)) for place in range(6)]
        assert await anext(handles[0])
        await harness.engine.close()
        for handle in handles:
            with pytest.raises(PredictionError, match="The model is shutting down"):
                await read(handle)
        with pytest.raises(PredictionError, match="The model is shutting down"):
            harness.engine.submit(request([1]))
        assert harness.idle()

    play(scene)


def test_as_many_steps_are_in_flight_as_there_are_lanes() -> None:
    async def scene(harness: EngineHarness) -> None:
        handles = [harness.engine.submit(request([place], 20)) for place in range(4)]
        for _ in range(12):
            await harness.steps.release()
        flying = [step for step in harness.steps.waiting if isinstance(step, Decode)]
        assert [len(step.slots) for step in flying] == [2, 2]
        assert not set(flying[0].slots) & set(flying[1].slots)
        harness.steps.open()
        assert [ids(await read(handle)) for handle in handles] == [alone([place], 20) for place in range(4)]

    play(scene, gated=True, lanes=2)


def test_times_of_a_request() -> None:
    async def scene(harness: EngineHarness) -> None:
        handle = harness.engine.submit(request([1, 2], 5, n=2))
        assert handle.times.queued is handle.times.to_first_token is handle.times.total is None
        await read(handle)
        times = handle.times
        assert times.queued is not None
        assert times.to_first_token is not None
        assert times.total is not None
        assert 0 <= times.queued <= times.to_first_token <= times.total

    play(scene)


def test_stats() -> None:
    async def scene(harness: EngineHarness) -> None:
        await asyncio.gather(*(answer(harness, request(range(9), 3)) for _ in range(3)))
        stats = harness.engine.stats()
        assert (stats.prompt_tokens, stats.completion_tokens, stats.steps) == (27, 9, len(harness.runner.log))
        assert (stats.prefix_placed, stats.prefix_hit) == (27, 16)
        assert stats.blocks_total == 64
        parts = stats.seconds
        assert min(parts.model, parts.sampling, parts.scheduling, parts.messaging) > 0

    play(scene)


@pytest.mark.parametrize("together", [False, True])
def test_keys_of_long_prompts_are_their_own(together: bool) -> None:
    """Where they depend on the length of the prompt, neither its own beginning nor another text's fits."""
    prompts = [list(range(30)), list(range(18)), list(range(20)), list(range(30)), list(range(22))]

    async def scene(harness: EngineHarness) -> None:
        waiting = [answer(harness, request(prompt)) for prompt in prompts]
        found = await asyncio.gather(*waiting) if together else [await one for one in waiting]
        for prompt, deltas in zip(prompts, found, strict=True):
            assert ids(deltas) == alone(prompt, 8, state=len(prompt) if len(prompt) > 20 else 0)
        if not together:
            assert harness.engine.stats().prefix_hit >= 16  # the short ones share theirs

    play(scene, limits(slots=3, prefill=8), native=20)


def test_a_short_prompt_that_grows_long_and_has_to_wait_goes_on() -> None:
    """Its keys are made anew, as those of a long one."""

    async def scene(harness: EngineHarness) -> None:
        asked = [request(list(range(first, first + 16)), 24) for first in (0, 50, 100)]
        found = await asyncio.gather(*(answer(harness, one) for one in asked))
        assert harness.engine.stats().preempted
        assert [len(ids(deltas)) for deltas in found] == [24] * 3
        assert ids(found[0]) == alone(range(16), 24)
        stretched = [step for step in harness.runner.log if isinstance(step, Stretch) and step.length]
        assert all(step.length > 20 for step in stretched)
        assert stretched

    play(scene, limits(slots=3, prefill=8, total=88), native=20)


def test_a_text_without_bad_words() -> None:
    async def scene(harness: EngineHarness) -> None:
        plain = text_of(await answer(harness, request(range(5), 8)))
        words = tuple(letter for letter in plain if letter.isascii())
        assert words
        text = text_of(await answer(harness, request(range(5), 8, bad_words=(*words, "and a longer one"))))
        assert text
        assert not set(words) & set(text)

    play(scene)


@pytest.mark.parametrize("stream", [True, False])
def test_the_ids_of_the_prompt(stream: bool) -> None:
    async def scene(harness: EngineHarness) -> None:
        asked = request(range(5), 3, n=2)
        asked.stream, asked.return_prompt_ids = stream, True
        deltas = await answer(harness, asked)
        assert deltas[0].prompt_ids == tuple(range(5))
        assert not any(delta.prompt_ids for delta in deltas[1:])
        asked.return_prompt_ids = False
        assert not (await answer(harness, asked))[0].prompt_ids

    play(scene)


def test_a_turn_goes_on_behind_one_that_a_stop_string_ended() -> None:
    """A state cannot go back, so that the text must be in no further step."""
    prompt, text = ascii_prompt(3)

    async def scene(harness: EngineHarness) -> None:
        deltas = await answer(harness, request(prompt, 30, stop=(text[1:],)))
        assert deltas[-1].finish_reason == "stop"
        said = [*prompt, *ids(deltas)]
        again = await answer(harness, request([*said, 5, 6], 2))
        assert again[-1].usage is not None
        assert again[-1].usage.cached == len(said) - 1

    play(scene, states=True, overlaps=False)
