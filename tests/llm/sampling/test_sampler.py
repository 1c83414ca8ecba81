from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.sampling import Chosen, Constraints, Sampler, choose_all
from msx_llm.sampling.largest import Row
from msx_sdk.generation import Constraint, SamplingParams
from tests.llm.tokenizers_of_tests import byte_level

TOKENIZER = byte_level()
EOS = 262
VOCAB = 270
"""Vocabulary of the model: more than the tokenizer knows, as checkpoints round up."""
CONSTRAINTS = Constraints(TOKENIZER.to_str(), {EOS}, VOCAB)


def sampler(
    seed: int = 0, prompt: tuple[int, ...] = (), constraint: Constraint | None = None, **params: object
) -> Sampler:
    state = constraint and CONSTRAINTS.compile(constraint)
    return Sampler(SamplingParams(**params), prompt, VOCAB, frozenset({EOS}), seed, state)  # type: ignore[arg-type]


def logits(step: int, rows: int = 1) -> Row:
    return (np.random.default_rng(step).standard_normal((rows, VOCAB)) * 3).astype(np.float32)


def choice(*texts: str) -> Constraint:
    return Constraint(kind="choice", value=json.dumps(texts))


def test_the_likeliest() -> None:
    row = logits(1)[0]
    assert sampler(temperature=0).choose(row) == Chosen(int(row.argmax()))


def test_the_first_of_equal_ones() -> None:
    assert sampler(temperature=0).choose(np.zeros(VOCAB, np.float32)).token == 0


def test_draws_follow_the_distribution() -> None:
    row = np.full(VOCAB, -np.inf, np.float32)
    row[[3, 5, 8]] = np.log([0.5, 0.3, 0.2])
    one = sampler(seed=1)
    counts = Counter(one.choose(row).token for _ in range(5_000))
    assert [counts[token] for token in (3, 5, 8)] == pytest.approx([2_500, 1_500, 1_000], abs=130)


def test_log_probabilities_are_the_models_own() -> None:
    row = logits(2)[0]
    chosen = sampler(temperature=0, logit_bias={9: 100.0}, logprobs=2).choose(row)
    own = row - np.log(np.exp(row).sum())
    assert chosen.token == 9
    assert chosen.logprob == pytest.approx(own[9], abs=1e-5)
    assert [token for token, _ in chosen.top] == np.argsort(-own)[:2].tolist()


def test_penalties_count_what_was_chosen() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[[4, 6]] = 1, 0.7
    one = sampler(temperature=0, frequency_penalty=0.5)
    assert [one.choose(row).token for _ in range(5)] == [4, 6, 4, 6, 0]


def test_no_end_before_min_tokens() -> None:
    row = np.zeros(VOCAB, np.float32)
    row[[EOS, 7, 3]] = 3, 2, 1
    one = sampler(temperature=0, min_tokens=2, stop_token_ids=(7,))
    assert [one.choose(row).token for _ in range(3)] == [3, 3, EOS]
    assert row[EOS] == 3


def test_a_seed_makes_the_same_draws_in_any_company() -> None:
    alone = sampler(seed=7, top_p=0.9)
    expected = [alone.choose(logits(step)[0]).token for step in range(5)]
    in_company, others = sampler(seed=7, top_p=0.9), [sampler(seed=seed) for seed in range(3)]
    for step in range(5):
        batch = np.concatenate([logits(100 + step, 2), logits(step), logits(200 + step)])
        assert choose_all([*others[:2], in_company, others[2]], batch)[2].token == expected[step]


PARAMS = st.fixed_dictionaries(
    {"seed": st.integers(0, 2**64 - 1)},
    optional={
        "temperature": st.sampled_from([0, 0.5, 1, 2]),
        "top_k": st.integers(0, 300),
        "top_p": st.floats(0.1, 1),
        "min_p": st.floats(0, 0.3),
        "typical_p": st.floats(0.1, 1),
        "repetition_penalty": st.sampled_from([0.8, 1.2]),
        "frequency_penalty": st.floats(-2, 2),
        "logit_bias": st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-100, 100), max_size=3),
        "min_tokens": st.integers(0, 3),
        "logprobs": st.integers(0, 3),
        "constraint": st.just(choice("yes", "yesterday", "no é")),
        "prompt": st.lists(st.integers(0, VOCAB - 1), max_size=4).map(tuple),
    },
)


@given(st.lists(PARAMS, min_size=1, max_size=6), st.integers(0, 1_000))
def test_a_step_is_each_text_alone(texts: list[dict[str, object]], start: int) -> None:
    together = [sampler(**params) for params in texts]  # type: ignore[arg-type]
    alone = [sampler(**params) for params in texts]  # type: ignore[arg-type]
    for step in range(start, start + 3):
        batch = logits(step, len(texts))
        batch.flags.writeable = False
        expected = [one.choose(row.copy()) for one, row in reversed([*zip(alone, batch, strict=True)])]
        assert choose_all(together, batch) == expected[::-1]


def text_of(one: Sampler, steps: int = 40) -> str:
    tokens = []
    for step in range(steps):
        chosen = one.choose(logits(step)[0])
        assert chosen.failure is None
        if chosen.token == EOS:
            break
        tokens.append(chosen.token)
    return str(TOKENIZER.decode(tokens))


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_constraint_is_kept_to(temperature: float) -> None:
    one = sampler(constraint=choice("maybe", "no é", "yes"), temperature=temperature)
    assert not one.finished
    assert text_of(one) in ("maybe", "no é", "yes")
    assert one.finished


def test_a_complete_constraint_ends_the_text_whatever_min_tokens_says() -> None:
    assert text_of(sampler(constraint=choice("yes"), min_tokens=30)) == "yes"


def test_min_tokens_prefers_the_longer_choice() -> None:
    one = sampler(constraint=choice("ye", "ye!"), min_tokens=2, logit_bias={EOS: 100.0})
    assert text_of(one) == "ye!"


def test_a_bias_cannot_break_a_constraint() -> None:
    assert text_of(sampler(constraint=choice("no"), logit_bias={5: 100.0}, temperature=0)) == "no"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_numbers_fail_their_text_only(temperature: float, bad: float) -> None:
    batch = logits(0, 2)
    batch[0, 5] = bad
    broken, whole = choose_all([sampler(temperature=temperature), sampler(temperature=temperature)], batch)
    assert broken.failure is not None
    assert broken.failure.status == 500
    assert "not finite numbers" in broken.failure.message
    assert whole.failure is None


def test_a_dead_end_of_a_constraint_is_the_requests_error() -> None:
    row = np.full(VOCAB, -np.inf, np.float32)
    row[3] = 1
    failure = sampler(constraint=choice("yes")).choose(row).failure
    assert failure is not None
    assert (failure.status, failure.message) == (
        400,
        "constraint: no token of this model can follow the text so far",
    )
