"""Decoders with sentence-transformers' modules and prompts, from texts to vectors: see make_packed_goldens.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msx_sdk.generation import EmbedRequest
from msx_sdk.testing import LocalModel
from tests.llm.eager import without_graphs
from tests.llm.embedding.packed import PACKED, PROMPTS, TEXTS, write_packed
from tests.llm.embedding.test_handler import embed, vector

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")

GOLDENS = json.loads(Path(__file__).with_name("packed.json").read_text())
KINDS = [pytest.param(kind, marks=() if kind == "last_of_both_ways" else pytest.mark.long) for kind in PACKED]


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_those_of_sentence_transformers(kind: str, tmp_path: Path) -> None:
    config = {"slotBuckets": [1], "contextBuckets": [48]}
    asked = [EmbedRequest(input=text, prompt_name=name or None) for name in ["", *PROMPTS] for text in TEXTS]
    with without_graphs(), LocalModel("embedding", write_packed(tmp_path, kind), config=config) as model:
        found = [vector(reply) for reply in embed(model, *asked)]
    golden = GOLDENS[kind]
    np.testing.assert_allclose(found, [row for name in ["", *PROMPTS] for row in golden[name]], atol=1e-4)
    assert not np.allclose(golden[""], golden["query"], atol=1e-2)
