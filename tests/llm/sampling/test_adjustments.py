from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_llm.sampling.adjustments import Adjustments, banned
from msx_sdk import InvalidInput
from msx_sdk.generation import SamplingParams

VOCAB = 12
TOKENS = st.lists(st.integers(0, VOCAB - 1), max_size=20)


@given(
    TOKENS,
    TOKENS,
    st.builds(
        SamplingParams,
        repetition_penalty=st.sampled_from([0.7, 1.0, 1.3]),
        frequency_penalty=st.sampled_from([-1.0, 0.0, 0.5]),
        presence_penalty=st.sampled_from([-0.5, 0.0, 2.0]),
        logit_bias=st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-100, 100)),
    ),
)
def test_one_token_after_another(prompt: list[int], text: list[int], params: SamplingParams) -> None:
    logits = np.random.default_rng(len(text)).standard_normal(VOCAB).astype(np.float32)
    adjustments = Adjustments(params, prompt, VOCAB)
    for token in text:
        adjustments.count(token)
    expected, counts = [], Counter(text)
    for token, logit in enumerate(logits.tolist()):
        if token in prompt or token in text:
            logit *= params.repetition_penalty ** (-1 if logit > 0 else 1)
        logit += params.logit_bias.get(token, 0)
        logit -= params.frequency_penalty * counts[token] + params.presence_penalty * (counts[token] > 0)
        expected.append(logit)
    np.testing.assert_allclose(adjustments.apply(logits), expected, rtol=1e-4, atol=1e-4)


def test_allowed_tokens_alone_are_chosen() -> None:
    params = SamplingParams(allowed_token_ids=(2, 5), logit_bias={2: -50.0, 7: 100.0}, repetition_penalty=2)
    adjustments = Adjustments(params, [5, 7], VOCAB)
    row = adjustments.apply(np.arange(VOCAB, dtype=np.float32))
    assert {token: value for token, value in enumerate(row.tolist()) if np.isfinite(value)} == {2: -48.0, 5: 2.5}
    adjustments.count(5)
    assert np.isfinite(adjustments.apply(row)).nonzero()[0].tolist() == [2, 5]


def test_an_allowed_token_that_the_model_does_not_have() -> None:
    with pytest.raises(InvalidInput, match=r"allowed_token_ids: the model has no token 12, its tokens are 0 to 11"):
        Adjustments(SamplingParams(allowed_token_ids=(VOCAB,)), [], VOCAB)


def test_the_logits_stay_as_they_are() -> None:
    logits = np.ones(VOCAB, np.float32)
    Adjustments(SamplingParams(repetition_penalty=2, logit_bias={1: 5}), [3], VOCAB).apply(logits)
    assert (logits == 1).all()


@pytest.mark.parametrize(
    ("wanted", "params"),
    [
        (False, SamplingParams(temperature=0.5, top_k=3, min_tokens=5)),
        (True, SamplingParams(logit_bias={1: 1})),
        (True, SamplingParams(allowed_token_ids=(1,))),
        (True, SamplingParams(frequency_penalty=-1)),
        (True, SamplingParams(presence_penalty=1)),
        (True, SamplingParams(repetition_penalty=1.1)),
    ],
)
def test_only_where_they_are_wanted(wanted: bool, params: SamplingParams) -> None:
    assert Adjustments.wanted(params) is wanted


@pytest.mark.parametrize(
    ("logit_bias", "sentence"),
    [
        ({12: 1.0}, "logit_bias: the model has no token 12, its tokens are 0 to 11"),
        ({-1: 1.0}, "logit_bias: the model has no token -1, its tokens are 0 to 11"),
        ({1: 101.0}, "logit_bias: 101 for token 1 is not between -100 and 100"),
        ({1: float("nan")}, "logit_bias: nan for token 1 is not between -100 and 100"),
    ],
)
def test_biases_that_make_no_sense(logit_bias: dict[int, float], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Adjustments(SamplingParams(logit_bias=logit_bias), [], VOCAB)


def test_what_would_end_the_text() -> None:
    params = SamplingParams(stop_token_ids=(7, 3), min_tokens=2)
    assert banned(params, frozenset({1, 3}), VOCAB).tolist() == [1, 3, 7]


def test_the_end_that_is_ignored_ends_nothing() -> None:
    params = SamplingParams(stop_token_ids=(7,), ignore_eos=True)
    assert banned(params, frozenset({1}), VOCAB).tolist() == [7]


def test_a_stop_token_that_the_model_does_not_have() -> None:
    with pytest.raises(InvalidInput, match="stop_token_ids: the model has no token 99"):
        banned(SamplingParams(stop_token_ids=(99,)), frozenset(), VOCAB)
