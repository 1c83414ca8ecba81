from __future__ import annotations

import numpy as np

from msx_llm.sampling.logprobs import Logprobs, prompt_logprobs

LOGITS = (np.random.default_rng(0).standard_normal((4, 700)) * 5).astype(np.float32)
EXPECTED = LOGITS.astype(np.float64) - np.log(np.exp(LOGITS.astype(np.float64)).sum(axis=1, keepdims=True))


def test_of_one_place() -> None:
    logprobs = Logprobs(LOGITS[0])
    np.testing.assert_allclose([logprobs.of(token) for token in range(700)], EXPECTED[0], atol=1e-5)


def test_the_likeliest() -> None:
    top = Logprobs(LOGITS[1]).top(20)
    order = np.argsort(-EXPECTED[1])[:20]
    assert [token for token, _ in top] == order.tolist()
    np.testing.assert_allclose([logprob for _, logprob in top], EXPECTED[1][order], atol=1e-5)


def test_as_many_as_asked_for() -> None:
    assert Logprobs(LOGITS[0]).top(0) == ()
    assert len(Logprobs(LOGITS[0, :3]).top(5)) == 3


def test_of_a_prompt() -> None:
    scores = prompt_logprobs(LOGITS, [3, 699, 0, 5])
    np.testing.assert_allclose([it.logprob or 0 for it in scores], EXPECTED[range(4), [3, 699, 0, 5]], atol=1e-5)
    assert [it.top for it in scores] == [()] * 4


def test_the_rank_counts_the_likelier_tokens() -> None:
    tokens = [int(EXPECTED[0].argmax()), int(EXPECTED[1].argmin()), 0, 5]
    ranks = [it.rank for it in prompt_logprobs(LOGITS, tokens)]
    assert ranks[:2] == [1, 700]
    assert ranks[2:] == [1 + int((EXPECTED[place] > EXPECTED[place, tokens[place]]).sum()) for place in (2, 3)]
    assert [it.rank for it in prompt_logprobs(np.array([[1.0, 2.0, 2.0]], np.float32), [2])] == [1]


def test_of_a_prompt_with_the_likeliest_at_each_place() -> None:
    for row, score in zip(LOGITS, prompt_logprobs(LOGITS, [3, 699, 0, 5], 4), strict=True):
        expected = Logprobs(row).top(4)
        assert [token for token, _ in score.top] == [token for token, _ in expected]
        np.testing.assert_allclose([value for _, value in score.top], [value for _, value in expected], atol=1e-5)


def test_large_logits() -> None:
    assert Logprobs(np.array([3e38, 0, -np.inf], np.float32)).of(0) == 0
