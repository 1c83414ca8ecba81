"""Drafted tokens do not change what is drawn: the distribution of texts is the model's, whatever the draft."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from msx_llm.sampling import Sampler, verify_all
from msx_sdk.generation import SamplingParams

WORDS, LENGTH, TEXTS = 4, 3, 4000
LOGITS = np.random.default_rng(3).standard_normal((WORDS + 1,) * LENGTH + (WORDS,)).astype(np.float32)
"""By the tokens before; the last index stands for none."""


def logits_after(text: tuple[int, ...]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    place = (*text, *[WORDS] * (LENGTH - len(text)))
    row: np.ndarray[tuple[int], np.dtype[np.float32]] = LOGITS[place]
    return row


def drawn(seed: int, params: SamplingParams, draft: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """A text of LENGTH tokens in steps with the draft's rest, and how many drafted tokens were accepted."""
    sampler, text, accepted = Sampler(params, (), WORDS, frozenset(), seed), tuple[int, ...](), 0
    while len(text) < LENGTH:
        rest = draft[len(text) : LENGTH - 1]
        rows = np.stack([logits_after((*text, *rest[:count])) for count in range(len(rest) + 1)])
        [chosen] = verify_all([sampler], [rows], [rest])
        accepted += len(chosen) - 1
        text = (*text, *(it.token for it in chosen))
    return text, accepted


def probability(text: tuple[int, ...], temperature: float) -> float:
    shares = [np.exp(logits_after(text[:place]) / temperature) for place in range(LENGTH)]
    return float(np.prod([share[token] / share.sum() for share, token in zip(shares, text, strict=True)]))


@pytest.mark.parametrize("draft", [(), (0, 0), (2, 1), (3, 3)])
def test_texts_are_distributed_as_the_model_says(draft: tuple[int, ...]) -> None:
    """The sum of the squared differences, by chi-squared with 63 degrees of freedom: above 110 in 1 of 5000 runs, and
    the seeds are always the same."""
    params = SamplingParams(temperature=0.8)
    found = [drawn(seed, params, draft) for seed in range(TEXTS)]
    counts = Counter(text for text, _ in found)
    wanted = {text: TEXTS * probability(text, 0.8) for text in itertools.product(range(WORDS), repeat=LENGTH)}
    assert sum((counts[text] - expected) ** 2 / expected for text, expected in wanted.items()) < 110
    assert bool(draft) == any(accepted for _, accepted in found)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_seed_draws_the_same_text_whatever_the_draft(temperature: float) -> None:
    params = SamplingParams(temperature=temperature)
    for seed in range(50):
        assert len({drawn(seed, params, draft)[0] for draft in ((), (0, 1), (3, 2), (1, 1))}) == 1
