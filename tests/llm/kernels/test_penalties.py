"""Penalties in graphs with open shapes, over several steps, beside what the host chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msx_llm.sampling import Sampler
from msx_sdk.generation import SamplingParams

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

VOCAB, SLOTS, STEPS = 300, 5, 12
PROMPTS = [[1, 2, 3], [4] * 9, list(range(100, 200))]
PARAMS = [
    {"frequency_penalty": 1.5},
    {"presence_penalty": -0.5, "temperature": 0.0},
    {"repetition_penalty": 1.7, "temperature": 0.0},
    {"repetition_penalty": 0.6, "frequency_penalty": -0.3, "presence_penalty": 1.0, "top_k": 20},
    {"temperature": 0.0},
]


def samplers() -> list[Sampler]:
    prompts = [PROMPTS[place % len(PROMPTS)] for place in range(SLOTS)]
    params = [SamplingParams(**one) for one in PARAMS]  # type: ignore[arg-type]
    return [Sampler(*it, VOCAB, frozenset(), 7) for it in zip(params, prompts, strict=True)]


@pytest.fixture(scope="module")
def chosen() -> Any:
    from msx_llm.kernels.ascend.choosing import TokenChooser
    from msx_llm.kernels.ascend.following import ChosenTokens
    from msx_sdk.mindspore.parallel import Parallel

    parallel = Parallel()
    return ChosenTokens(TokenChooser(VOCAB, eager=False), parallel, SLOTS, eager=False)


def rows_of(step: int) -> Any:
    """The same few tokens are likely each time."""
    noise = np.random.default_rng(step).normal(size=(SLOTS, VOCAB))
    return (noise + 3 * np.random.default_rng(0).normal(size=VOCAB)).astype(np.float32)


def recount(chosen: Any, slot: int, sampler: Sampler) -> None:
    chosen.recount(slot, tuple(sampler.counts), tuple(sampler.counts.values()))


def test_the_tokens_are_the_hosts(chosen: Any) -> None:
    from msx_llm.step import TokenChunk

    host, device, slots = samplers(), samplers(), [3, 0, 4, 1, 2]
    for slot, sampler in zip(slots, device, strict=True):
        recount(chosen, slot, sampler)
    texts = []
    for step in range(STEPS):
        wanted = [sampler.choose(row).token for sampler, row in zip(host, rows_of(step), strict=True)]
        chunks, choices = [TokenChunk(slot, 5, (1,)) for slot in slots], [sampler.order() for sampler in device]
        found = chosen.choose(ms.Tensor(rows_of(step)), chunks, choices).asnumpy().tolist()
        assert found == wanted, step
        texts.append([sampler.take(token).token for sampler, token in zip(device, found, strict=True)])
    plain = [len(set(text)) for text in zip(*texts, strict=True)]
    assert plain[0] > plain[4], "penalties do not change anything"
    assert [sampler.counts for sampler in device] == [sampler.counts for sampler in host]


def test_a_slot_is_counted_anew_for_the_next_text(chosen: Any) -> None:
    """And what another slot has stays."""
    from msx_llm.step import TokenChunk

    row = np.zeros((2, VOCAB), np.float32)
    row[:, 9], row[:, 8] = 1.0, 0.5
    params = SamplingParams(temperature=0.0, presence_penalty=0.7)
    for slot, counts in ((0, {9: 2}), (1, {9: 2}), (1, {7: 2})):
        chosen.recount(slot, tuple(counts), tuple(counts.values()))
    order = Sampler(params, [], VOCAB, frozenset(), 1).order()
    found = chosen.choose(ms.Tensor(row), [TokenChunk(0, 5, (1,)), TokenChunk(1, 5, (1,))], [order, order])
    assert found.asnumpy().tolist() == [8, 9]


def test_a_row_that_is_not_finite_is_not_counted(chosen: Any) -> None:
    from msx_llm.step import TokenChunk

    row = np.zeros((1, VOCAB), np.float32)
    row[0, 0] = 0.5
    order = Sampler(SamplingParams(temperature=0.0, presence_penalty=0.7), [], VOCAB, frozenset(), 1).order()
    chosen.recount(0, (), ())
    chunks = [TokenChunk(0, 5, (1,))]
    assert chosen.choose(ms.Tensor(np.full((1, VOCAB), np.nan, np.float32)), chunks, [order]).asnumpy() == [-1]
    assert chosen.choose(ms.Tensor(row), chunks, [order]).asnumpy() == [0]
