"""Steps over two graphs: each text goes on as the whole text would, whoever shares the step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msx_llm.mindir.inputs import GraphInputs
from msx_llm.mindir.runner import ExportedGraph, TwoFileRunner
from msx_sdk.errors import HandlerLoadError
from tests.llm.mindir.fakes import (
    CONTEXT,
    NAMES,
    PROMPT,
    VOCAB,
    NumpyDevice,
    increment_graph,
    next_token,
    prefill_graph,
    spec,
)


def runner_of(prefill: ExportedGraph, increment: ExportedGraph, context: int = CONTEXT) -> TwoFileRunner:
    runner = TwoFileRunner(prefill, increment, NumpyDevice(), context)
    runner.warm_up(lambda shape: None)
    return runner


@pytest.fixture(params=["one prompt", "as many prompts", "with caches"])
def runner(request: pytest.FixtureRequest) -> TwoFileRunner:
    batch = 1 if request.param == "one prompt" else 3
    return runner_of(prefill_graph(batch, caches=int(request.param == "with caches")), increment_graph())


def test_its_sizes(runner: TwoFileRunner) -> None:
    assert (runner.slots, runner.context, runner.prefill_size, runner.vocab_size) == (3, CONTEXT, PROMPT, VOCAB)
    assert not runner.all_logits


def test_texts_that_join_and_leave(runner: TwoFileRunner) -> None:
    """In any slots, beside any others, until the context is full."""
    texts = {slot: [slot + 1, 4, 2] for slot in (2, 0)}
    for slot, text in texts.items():
        text.append(int(runner.prefill(slot, 0, text).argmax()))
    for step in range(CONTEXT - 3):
        if step == 2:
            texts[1] = [9, 8, 7, 6, 5, 4]
            texts[1].append(int(runner.prefill(1, 0, texts[1]).argmax()))
        if step == 4:
            del texts[0]
        slots = [slot for slot in texts if len(texts[slot]) <= CONTEXT]
        last = [texts[slot][-1] for slot in slots]
        logits = runner.decode(slots, last, [len(texts[slot]) - 1 for slot in slots])
        for slot, row in zip(slots, logits, strict=True):
            assert int(row.argmax()) == next_token(texts[slot])
            texts[slot].append(int(row.argmax()))


def test_one_text_alone() -> None:
    runner = runner_of(prefill_graph(1), increment_graph(1))
    runner.prefill(0, 0, [1, 2, 3, 4, 5])
    assert int(runner.prefill(0, 0, [3]).argmax()) == next_token([3])
    assert int(runner.decode([0], [7], [1])[0].argmax()) == next_token([3, 7])


def test_logits_of_all_tokens() -> None:
    runner = runner_of(prefill_graph(3, every=True), increment_graph())
    assert runner.all_logits
    assert runner.prefill(1, 0, [1, 2, 3], all_logits=True).argmax(-1).tolist() == [
        next_token([1, 2, 3][:n]) for n in (1, 2, 3)
    ]
    assert int(runner.prefill(1, 0, [1, 2]).argmax()) == next_token([1, 2])


@pytest.mark.parametrize(("start", "tokens"), [(1, [1]), (0, []), (0, [1] * (PROMPT + 1))])
def test_prompts_that_no_call_takes(runner: TwoFileRunner, start: int, tokens: list[int]) -> None:
    with pytest.raises(ValueError, match="a prompt has 1 to 6, from 0 on"):
        runner.prefill(0, start, tokens)


def test_a_position_beyond_the_context(runner: TwoFileRunner) -> None:
    with pytest.raises(ValueError, match="the context has 12 positions"):
        runner.decode([0], [1], [CONTEXT])


def changed(graph: ExportedGraph, *, specs: Any = None, outputs: Any = None) -> ExportedGraph:
    inputs = graph.inputs if specs is None else GraphInputs(graph.inputs.file, specs, NAMES)
    return ExportedGraph(inputs, graph.run if outputs is None else lambda tensors: outputs(graph.run(tensors)))


def test_graphs_that_do_not_belong_together() -> None:
    prefill, increment = prefill_graph(), increment_graph()
    no_caches = changed(increment, specs=[spec("tokens", 3, 1)])
    for pair, words in (
        ((prefill, prefill), "prefill.mindir takes 6 tokens a text; expected one at a time"),
        ((prefill, no_caches), "increment.mindir has no caches among its inputs"),
        ((prefill_graph(2), increment), "prefill.mindir takes 2 texts, and increment.mindir 3: expected 1, or as many"),
        ((prefill_graph(3, caches=2), increment), "prefill.mindir takes 2 caches, and increment.mindir 1"),
        (
            (changed(prefill, outputs=lambda made: made[:1]), increment),
            "has 1 outputs; expected the logits",
        ),
        (
            (changed(prefill, outputs=lambda made: [made[0], made[1][None]]), increment),
            "makes a cache of shape",
        ),
        (
            (changed(prefill, outputs=lambda made: [made[0][0], made[1]]), increment),
            "its logits have the shape",
        ),
        ((prefill, changed(increment, outputs=lambda made: [made[0][..., :5], made[1]])), "of different sizes"),
    ):
        with pytest.raises(HandlerLoadError, match=words):
            runner_of(*pair)
    with pytest.raises(HandlerLoadError, match=r"takes 6 tokens, more than maxTotalTokens \(5\)"):
        runner_of(prefill, increment, context=5)


def test_a_step_that_fails_leaves_the_caches() -> None:
    runner = runner_of(prefill_graph(), increment_graph())
    runner.prefill(0, 0, [1, 2])
    with pytest.raises(ValueError, match="positions"):
        runner.decode([0], [1], [-1])
    assert int(runner.decode([0], [3], [2])[0].argmax()) == next_token([1, 2, 3])


def test_texts_share_nothing(runner: TwoFileRunner) -> None:
    with pytest.raises(NotImplementedError):
        runner.copy(0, 1, 1)
    assert np.asarray(runner.prefill(0, 0, [1])).shape == (VOCAB,)
