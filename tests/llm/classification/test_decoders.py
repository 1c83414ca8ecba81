"""Decoders that score texts and pairs, against sentence-transformers: see make_goldens.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import ClassifyRequest
from msx_sdk.testing import LocalModel
from tests.llm.classification.checkpoints import OTHERS
from tests.llm.classification.decoders import (
    PLAIN_TEMPLATE,
    TEMPLATE,
    write_answering,
    write_decoder,
)
from tests.llm.classification.make_goldens import CUT
from tests.llm.classification.test_handler import answers, pairs, scores
from tests.llm.eager import without_graphs

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text())
CONFIG = {"slotBuckets": [1], "contextBuckets": [48], "maxInputTokens": 48}
FEW = [
    pytest.param(kind, marks=() if kind == "qwen3" else pytest.mark.long)
    for kind in ("llama", "qwen2", "qwen2_two_ways", "qwen3", "gemma3_text")
]


@pytest.fixture(autouse=True, scope="module")
def _without_graphs() -> Iterator[None]:
    """embedding/test_network has those of the same networks."""
    with without_graphs():
        yield


def served(folder: Path, **config: Any) -> LocalModel:
    return LocalModel("sequence_classification", folder, config=CONFIG | config)


def found(folder: Path, *requests: ClassifyRequest, **config: Any) -> list[Any]:
    with served(folder, **config) as model:
        return [scores(reply) for reply in answers(model, *requests)]


@pytest.mark.parametrize("kind", FEW)
def test_a_head_for_labels(kind: str, tmp_path: Path) -> None:
    texts = [ClassifyRequest(input=text, scale="logit") for text in OTHERS]
    for name, reranks in (("rerank", True), ("classify", False)):
        golden = GOLDENS[f"{kind}-{name}"]
        got = found(write_decoder(tmp_path / name, kind, reranks=reranks), *pairs(), *pairs(scale="logit"), *texts)
        np.testing.assert_allclose(got, golden["scores"] + golden["logits"] + golden["texts"], atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "module"), [("qwen3_tied", False), ("llama_head", False), ("qwen3_tied", True)])
def test_answers_by_two_words(kind: str, module: bool, tmp_path: Path) -> None:
    golden = GOLDENS[f"{kind}-module" if module else kind]
    got = found(write_answering(tmp_path, kind, module=module), *pairs(), *pairs(scale="logit"))
    np.testing.assert_allclose(got, golden["scores"] + golden["logits"], atol=1e-4)


def test_a_long_document_is_cut_before_the_templates_end(tmp_path: Path) -> None:
    asked = [ClassifyRequest(input=first, pair=second, truncate=32) for first, second in CUT]
    with served(write_answering(tmp_path, "qwen3_tied")) as model:
        got = answers(model, *asked, ClassifyRequest(input="cat", pair="cat", truncate=3), ClassifyRequest(input="cat"))
        np.testing.assert_allclose([scores(reply) for reply in got[:2]], GOLDENS["qwen3_tied-cut"]["scores"], atol=1e-4)
        said = [reply.failure.message for reply in got[2:] if reply.failure is not None]
        assert said == [
            "truncate: expected at least 5: 3 are special tokens",
            "pair: needed: this model says how well a second text fits the first",
        ]


@pytest.mark.long
def test_the_yamls_template_and_words(tmp_path: Path) -> None:
    plain = write_answering(tmp_path / "plain", "qwen3_tied", PLAIN_TEMPLATE)
    own = {"template": TEMPLATE, "answers": ["no", "yes"]}
    got = found(plain, *pairs(scale="logit"), classification=own)
    np.testing.assert_allclose(got, GOLDENS["qwen3_tied-module"]["logits"], atol=1e-4)
    templated = found(write_decoder(tmp_path / "head", "qwen3"), *pairs(), classification={"template": TEMPLATE})
    np.testing.assert_allclose(templated, GOLDENS["qwen3-templated"]["scores"], atol=1e-4)
    one = found(plain, *pairs(scale="logit"), classification={"template": TEMPLATE, "answers": ["yes"]})
    other = found(plain, *pairs(scale="logit"), classification={"template": TEMPLATE, "answers": ["no"]})
    np.testing.assert_allclose(np.subtract(one, other), GOLDENS["qwen3_tied"]["logits"], atol=1e-4)


def refusal(folder: Path, **config: Any) -> str:
    with pytest.raises(HandlerLoadError) as raised, served(folder, **config):
        pass
    return str(raised.value)


def test_what_cannot_score(tmp_path: Path) -> None:
    plain = write_answering(tmp_path / "plain", "qwen3_tied", PLAIN_TEMPLATE)
    key = "model-config.yaml, classification.template: "
    assert refusal(plain).startswith(f"{key}needed: the model answers with a word")
    assert refusal(plain, classification={"template": PLAIN_TEMPLATE}) == (
        f"{key}of messages with the roles query and document it writes no document behind a query"
    )
    unknown = {"template": TEMPLATE, "answers": ["Yes"]}
    assert "the tokenizer has no token 'Yes'" in refusal(plain, classification=unknown)
    other = write_decoder(tmp_path / "other", "qwen3")
    tensors = load_file(other / "model.safetensors")
    save_file(tensors | {"score.weight": tensors["score.weight"][:, :8]}, other / "model.safetensors")
    assert refusal(other) == "score.weight: its shape is (1, 8), and states have 32 numbers"
