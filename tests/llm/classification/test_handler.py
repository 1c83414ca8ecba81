"""`--handler sequence_classification` as the worker runs it, against sentence-transformers: see make_goldens.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from msx_core.generation.wire import encode
from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import CLASSIFY, ClassifyReply, ClassifyRequest
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel, Reply
from tests.llm.classification.checkpoints import (
    CLASSES,
    LABELS,
    OTHERS,
    PAIRS,
    headed_tensors,
    write_classifier,
)
from tests.llm.eager import without_graphs

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text())
CONFIG = {"slotBuckets": [1, 4], "contextBuckets": [32], "maxInputTokens": 32}


@pytest.fixture(autouse=True, scope="module")
def _without_graphs() -> Iterator[None]:
    """tests/e2e/test_classification.py has those of such networks."""
    with without_graphs():
        yield


def answers(model: LocalModel, *requests: ClassifyRequest) -> list[Reply]:
    return model.predict(
        [
            InferenceRequest(f"classify-{n}", {"body": Part(encode(request))}, operation=CLASSIFY)
            for n, request in enumerate(requests)
        ]
    )


def scores(reply: Reply) -> Any:
    assert reply.failure is None, reply.failure
    return msgspec.msgpack.decode(reply.body, type=ClassifyReply).scores


def pairs(**options: Any) -> list[ClassifyRequest]:
    return [ClassifyRequest(input=first, pair=second, **options) for first, second in PAIRS]


@pytest.mark.parametrize("kind", CLASSES)
def test_reranking_as_sentence_transformers_has_it(kind: str, tmp_path: Path) -> None:
    with LocalModel("sequence_classification", write_classifier(tmp_path, kind, reranks=True), config=CONFIG) as model:
        golden = GOLDENS[f"{kind}-rerank"]
        found = [scores(reply) for reply in answers(model, *pairs(), *pairs(scale="logit"))]
        np.testing.assert_allclose(found, golden["scores"] + golden["logits"], atol=1e-4)
        assert model.predict([{"input": PAIRS[0][0], "pair": PAIRS[0][1]}])[0].json() == {
            "LABEL_0": pytest.approx(golden["scores"][0][0], abs=1e-4)
        }


@pytest.mark.parametrize("kind", CLASSES)
def test_labels_as_sentence_transformers_has_them(kind: str, tmp_path: Path) -> None:
    with LocalModel("sequence_classification", write_classifier(tmp_path, kind), config=CONFIG) as model:
        golden = GOLDENS[f"{kind}-classify"]
        texts = [ClassifyRequest(input=text, scale="logit") for text in OTHERS]
        found = [scores(reply) for reply in answers(model, *pairs(), *texts)]
        np.testing.assert_allclose(found, golden["scores"] + golden["texts"], atol=1e-4)
        raised = np.exp(golden["texts"][0])
        (likely,) = answers(model, ClassifyRequest(input=OTHERS[0], scale="probability"))
        np.testing.assert_allclose(scores(likely), raised / raised.sum(), atol=1e-4)
        assert [*model.predict([OTHERS[0]])[0].json()] == [*LABELS]


def test_a_roberta_never_tells_the_second_text_from_the_first(tmp_path: Path) -> None:
    """Though its file has two types: its tokenizer makes one of them."""
    folder, tensors = (
        write_classifier(tmp_path, "roberta", reranks=True, type_vocab_size=2),
        headed_tensors("roberta", 1),
    )
    types = "roberta.embeddings.token_type_embeddings.weight"
    tensors[types] = np.concatenate([tensors[types], -3 * tensors[types]])
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with LocalModel("sequence_classification", folder, config=CONFIG) as model:
        found = [scores(reply) for reply in answers(model, *pairs())]
        np.testing.assert_allclose(found, GOLDENS["roberta-rerank"]["scores"], atol=1e-4)


def test_an_input_that_is_too_long(tmp_path: Path) -> None:
    with LocalModel("sequence_classification", write_classifier(tmp_path, reranks=True), config=CONFIG) as model:
        long, cut, wide, short, ids = answers(
            model,
            ClassifyRequest(input="cat", pair="cat " * 40),
            ClassifyRequest(input="cat", pair="cat " * 40, truncate=6),
            ClassifyRequest(input="cat", pair="cat", truncate=33),
            ClassifyRequest(input="cat", pair="cat", truncate=4),
            ClassifyRequest(input=(2, 3), pair="cat"),
        )
        (same,) = answers(model, ClassifyRequest(input="cat", pair="cat cat"))
        assert scores(cut) == pytest.approx(scores(same), abs=1e-6)
        said = [reply.failure.message for reply in (long, wide, short, ids) if reply.failure is not None]
        assert said == [
            "input: This model's maximum context length is 32 tokens (maxInputTokens); the input has 44. Input "
            "tokens exceed the configured limit: shorten or truncate it.",
            "truncate: 33 is more than maxInputTokens, 32",
            "truncate: expected at least 5: 3 are special tokens",
            "input: expected a text, since there is a pair; token ids are taken alone",
        ]


def refusal(folder: Path) -> str:
    with pytest.raises(HandlerLoadError) as raised, LocalModel("sequence_classification", folder, config=CONFIG):
        pass
    return str(raised.value)


def test_a_checkpoint_without_a_head_or_of_other_labels(tmp_path: Path) -> None:
    headless = write_classifier(tmp_path / "headless")
    tensors = {name: array for name, array in headed_tensors("bert", 3).items() if name != "classifier.weight"}
    save_file(tensors, headless / "model.safetensors", {"format": "pt"})
    assert "the weights have no tensor classifier.weight of 2 axes" in refusal(headless)
    other = write_classifier(tmp_path / "other", id2label={"0": "yes", "1": "no"})
    assert "id2label: expected the labels 0 to 2, as the weights have" in refusal(other)
    unknown = write_classifier(tmp_path / "act", sentence_transformers={"activation_fn": "torch.nn.modules.x.Mish"})
    assert "the activation Mish is not one of Identity, Sigmoid, Softmax, Tanh" in refusal(unknown)
