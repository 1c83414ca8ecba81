"""Beams find the texts that Hugging Face transformers finds: tests/goldens/make_beams.py."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from msx_core.generation.beams import BeamRounds, Tops
from msx_llm.sampling.logprobs import Logprobs
from msx_sdk.generation import BeamSearch
from tests.llm.runners import GOLDENS, limits, make_runner

pytestmark = pytest.mark.mindspore

GOLDEN = json.loads(GOLDENS.with_name("beams.json").read_text())


@pytest.fixture(scope="module")
def logits() -> Any:
    """Logits of the token behind a text; each is computed once for all cases."""
    pytest.importorskip("mindspore")
    runner, known = make_runner(GOLDEN["family"], limits(), graphs=True), dict[tuple[int, ...], Logprobs]()

    def of(tokens: tuple[int, ...]) -> Logprobs:
        if tokens not in known:
            known[tokens] = Logprobs(runner.prefill(0, 0, [*GOLDEN["prompt"], *tokens]))
        return known[tokens]

    return of


def name_of(case: dict[str, Any]) -> str:
    return f"{case['width']} beams, {len(case['ends'])} ends, {case['penalty']}, {case['early']}"


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=name_of)
def test_texts_are_those_of_transformers(logits: Any, case: dict[str, Any]) -> None:
    options = BeamSearch(length_penalty=case["penalty"], early_stopping=case["early"])
    rounds = BeamRounds(case["width"], case["ends"], GOLDEN["most"], options)
    while not rounds.over:
        rounds.grow([tops(logits, beam.tokens, rounds.wanted) for beam in rounds.running])
    assert [[token.id for token in ended.beam.tokens] for ended in rounds.ended] == case["texts"]
    if case["scores"]:
        np.testing.assert_allclose([ended.score for ended in rounds.ended], case["scores"], atol=1e-4)


def tops(logits: Any, tokens: Any, count: int) -> Tops:
    found: Tops = logits(tuple(token.id for token in tokens)).top(count)
    return found
