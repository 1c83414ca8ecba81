"""Tokens that a device chooses, in graphs with open shapes, beside what the host chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from msx_llm.sampling import Sampler
from msx_llm.sampling.choice import TokenChoice
from msx_sdk.generation import SamplingParams
from tests.emulated_ascend.host_choice import by_host

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

VOCAB = 1000
PARAMS = [
    (0.0, 0, 1.0, 0.0),
    (1.0, 0, 1.0, 0.0),
    (0.7, 0, 0.9, 0.0),
    (1.0, 40, 1.0, 0.0),
    (1.5, 40, 0.5, 0.0),
    (1.0, 0, 1.0, 0.05),
    (1.0, 5000, 0.95, 0.01),
    (2e-5, 0, 0.9, 0.0),
    (1.0, 1, 1e-6, 1.0),
]

Choose = Callable[[Any, list[TokenChoice]], Any]


@pytest.fixture(scope="module")
def choose() -> Choose:
    from msx_llm.kernels.ascend.choosing import TokenChooser

    chooser = TokenChooser(VOCAB, eager=False)
    return lambda logits, choices: chooser(ms.Tensor(logits), choices).asnumpy()


def logits(rows: int, seed: int = 1) -> Any:
    """Some are equal, the largest too."""
    found = np.random.default_rng(seed).normal(scale=3, size=(rows, VOCAB)).astype(np.float32).round(1)
    found[:, 7] = found[:, 900] = found.max(axis=1)
    return found


def test_the_tokens_are_the_hosts(choose: Choose) -> None:
    uniform = np.random.default_rng(2).random(10 * len(PARAMS))
    choices = [TokenChoice(*params, number) for params, number in zip(PARAMS * 10, uniform, strict=True)]
    rows = logits(len(choices))
    wanted = [by_host(row, choice) for row, choice in zip(rows, choices, strict=True)]
    found = choose(rows, choices)
    assert (found.dtype, found.tolist()) == (np.int32, wanted), "another type cannot be received by rank 0"
    assert len(set(wanted)) > 30, "they hardly differ"


def test_sums_over_a_large_vocabulary_are_exact_enough() -> None:
    """A cumulative sum over all of it in single precision chooses other tokens for one text in five."""
    from msx_llm.kernels.ascend.choosing import TokenChooser

    random = np.random.default_rng(1)
    rows = random.normal(scale=3, size=(16, 152_000)).astype(np.float32)
    choices = [TokenChoice(0.8, 0, 0.9, 0.0, uniform) for uniform in random.random(16)]
    found = TokenChooser(152_000, eager=False)(ms.Tensor(rows), choices).asnumpy()
    assert found.tolist() == [by_host(row, choice) for row, choice in zip(rows, choices, strict=True)]


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_ends_of_the_interval_are_tokens_that_may_be_drawn(choose: Choose, uniform: float) -> None:
    """The larger number is 1 in float32."""
    rows, choice = logits(1), TokenChoice(1.0, 40, 0.9, 0.0, uniform)
    [token] = choose(rows, [choice])
    assert token == by_host(rows[0], choice)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_rows_that_are_not_finite_have_no_token(choose: Choose, temperature: float, broken: float) -> None:
    rows, choice = logits(3), TokenChoice(temperature, uniform=0.4)
    rows[1, 3] = broken
    rows[2, 4] = -np.inf
    first, second, third = choose(rows, [choice] * 3)
    assert second == -1
    assert [first, third] == [by_host(row, choice) for row in rows[[0, 2]]]


def test_a_text_without_a_token_fails() -> None:
    chosen = Sampler(SamplingParams(), (), VOCAB, frozenset(), 1).take(-1)
    assert chosen.failure is not None
    assert "not finite" in chosen.failure.message
