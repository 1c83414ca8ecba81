"""Log-probabilities in the model's own distribution."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msx_llm.sampling.largest import Row, largest


class Logprobs:
    """The log-probabilities at one place in the text. logits [vocab], before penalties and temperature."""

    def __init__(self, logits: Row) -> None:
        self._logits = logits
        self._normaliser = float(log_sum_exp(logits[None])[0])

    def of(self, token: int) -> float:
        return float(self._logits[token]) - self._normaliser

    def top(self, k: int) -> tuple[tuple[int, float], ...]:
        """The `k` likeliest tokens, the likeliest first."""
        return tuple((int(token), self.of(int(token))) for token in largest(self._logits, k))


class PromptScore(NamedTuple):
    """The log-probability of a prompt's token, None for the first one, and the likeliest tokens at its place. The
    likeliest has the rank 1."""

    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    rank: int | None = None


def prompt_logprobs(logits: Row, tokens: Sequence[int], top: int = 0) -> list[PromptScore]:
    """The score of each token, with the `top` likeliest. logits [n, vocab]: those of the places before the `n`
    tokens."""
    scored = zip(logits, log_sum_exp(logits), tokens, strict=True)
    return [_score(row, float(normaliser), token, top) for row, normaliser, token in scored]


def _score(logits: Row, normaliser: float, token: int, top: int) -> PromptScore:
    likeliest = tuple((int(it), float(logits[it]) - normaliser) for it in largest(logits, top))
    return PromptScore(float(logits[token]) - normaliser, likeliest, int((logits > logits[token]).sum()) + 1)


def log_sum_exp(logits: Row) -> NDArray[np.float64]:
    """[n, vocab] -> [n]"""
    peak = logits.max(axis=1)
    sums = [np.exp(row - top).sum(dtype=np.float64) for row, top in zip(logits, peak, strict=True)]
    result: NDArray[np.float64] = np.log(np.array(sums, np.float64)) + peak
    return result
