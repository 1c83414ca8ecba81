from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.sampling import BadWords, Sampler
from msx_llm.sampling.largest import Row
from msx_sdk.generation import SamplingParams

VOCAB = 6
TOKEN = st.integers(0, VOCAB - 1)


def banned(words: BadWords) -> set[int]:
    row = np.zeros(VOCAB, np.float32)
    words.ban(row)
    return set(np.flatnonzero(np.isneginf(row)).tolist())


@given(st.lists(st.lists(TOKEN, min_size=1, max_size=4), max_size=6), st.lists(TOKEN, max_size=12))
def test_what_would_complete_a_word(sequences: list[list[int]], text: list[int]) -> None:
    words = BadWords(sequences)
    for token in text:
        words.count(token)
    ends = {word[-1] for word in sequences if len(word) == 1 or text[-(len(word) - 1) :] == word[:-1]}
    assert banned(words) == ends


def row(*likeliest: int) -> Row:
    values = np.zeros(VOCAB, np.float32)
    values[list(likeliest)] = [len(likeliest) - place for place in range(len(likeliest))]
    return values


def sampler(words: list[list[int]], **params: object) -> Sampler:
    asked = SamplingParams(temperature=0, **params)  # type: ignore[arg-type]
    return Sampler(asked, [], VOCAB, frozenset({0}), 1, None, BadWords(words))


def test_the_next_likeliest_is_taken() -> None:
    logits = row(3, 2)
    asked = sampler([[3, 3], [2]])
    assert [asked.choose(logits).token for _ in range(4)] == [3, 0, 3, 0]
    assert logits.tolist() == row(3, 2).tolist()


def test_log_probabilities_are_the_models_own() -> None:
    assert sampler([[3]], logprobs=1).choose(row(3, 2)).top[0][0] == 3


@pytest.mark.parametrize("min_tokens", [0, 2])
def test_nothing_is_left(min_tokens: int) -> None:
    failure = sampler([[id] for id in range(VOCAB)], min_tokens=min_tokens).choose(row(3)).failure
    assert failure is not None
    assert failure.status == 400
    assert failure.message.startswith("bad_words: without them no token of this model can follow")
