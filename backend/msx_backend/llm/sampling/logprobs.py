"""Log-probabilities in the model's own distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from msx_backend.llm.sampling.largest import Row, largest


class Logprobs:
    """Of one place in the text. logits [vocab], before penalties and temperature."""

    def __init__(self, logits: Row) -> None:
        self._logits = logits
        self._normaliser = float(log_sum_exp(logits[None])[0])

    def of(self, token: int) -> float:
        return float(self._logits[token]) - self._normaliser

    def top(self, k: int) -> tuple[tuple[int, float], ...]:
        """The `k` likeliest tokens, the likeliest first."""
        return tuple((int(token), self.of(int(token))) for token in largest(self._logits, k))


def prompt_logprobs(logits: Row, tokens: Sequence[int]) -> list[float]:
    """Log-probability of each token. logits [n, vocab]: those of the places before the `n` tokens."""
    chosen = logits[np.arange(len(tokens)), np.asarray(tokens, np.intp)]
    return [float(value) for value in chosen - log_sum_exp(logits)]


def log_sum_exp(logits: Row) -> NDArray[np.float64]:
    """[n, vocab] -> [n]"""
    peak = logits.max(axis=1)
    sums = [np.exp(row - top).sum(dtype=np.float64) for row, top in zip(logits, peak, strict=True)]
    result: NDArray[np.float64] = np.log(np.array(sums, np.float64)) + peak
    return result
