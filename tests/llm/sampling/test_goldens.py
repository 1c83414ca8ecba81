"""The repetition penalty and all filters together, against what Hugging Face transformers leaves of the same logits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msx_llm.sampling.adjustments import Adjustments
from msx_llm.sampling.filters import weights
from tests.llm.sampling.cases import CASES, SEEN, VOCAB, logits

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text())


@pytest.mark.parametrize("number", range(len(CASES)))
def test_like_transformers(number: int) -> None:
    row = Adjustments(CASES[number], SEEN, VOCAB).apply(logits(number))
    left = weights(row, CASES[number], row.max())
    total = float(left.kept().sum())
    kept = {str(left.id(place)): float(value) / total for place, value in enumerate(left.kept()) if value}
    assert kept.keys() == GOLDENS[number].keys()
    assert kept == pytest.approx(GOLDENS[number], abs=1e-6)
