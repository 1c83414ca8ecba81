"""Logits and parameters that this project and Hugging Face transformers filter alike."""

from __future__ import annotations

import itertools

import numpy as np

from msx_llm.sampling.largest import Row
from msx_sdk.generation import SamplingParams

VOCAB = 80
SEEN = [3, 3, 10, 79]

_combinations = itertools.product([0.6, 1.5], [0, 5, 30], [1.0, 0.8], [0.0, 0.05], [1.0, 0.7])
CASES = [
    SamplingParams(temperature=t, top_k=k, top_p=p, min_p=m, typical_p=y, repetition_penalty=1.3)
    for t, k, p, m, y in _combinations
]


def logits(case: int) -> Row:
    """Rounded, so that all agree on them to the last bit; no two of them are equal."""
    values = np.random.default_rng(case).permutation(VOCAB) / 16 - 2
    return values.astype(np.float32)
