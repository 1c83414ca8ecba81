"""A model that reranks and one that classifies behind the server's routes, asked over HTTP and by the client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("mindspore")

from msx_archiver.options import PackOptions
from msx_archiver.pack import pack
from msx_client import Client
from tests.e2e.server import RunningServer, new_store, run_server
from tests.llm.classification.checkpoints import LABELS, write_classifier

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

CONFIG = "slotBuckets: [1, 4]\ncontextBuckets: [32]\nmaxInputTokens: 32\n"
QUERY, TEXTS = "the cat sat", ["on a mat", "a dog", "the cats sat on the mat with a statement", "cat " * 60]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("classification")
    (folder / "config.yaml").write_text(CONFIG)
    store = new_store(folder)
    for name, reranks in (("ranker", True), ("labels", False)):
        checkpoint = write_classifier(folder / f"{name}-files", reranks=reranks)
        pack(packed(name, checkpoint, folder / "config.yaml", store))
    with run_server(folder, "--models", "ranker.mar", "labels.mar") as running:
        yield running


def packed(name: str, checkpoint: Path, config: Path, store: Path) -> PackOptions:
    return PackOptions(
        model_name=name,
        handler="sequence_classification",
        extra_files=str(checkpoint),
        config_file=str(config),
        export_path=store,
    )


def scored(server: RunningServer, text: str) -> float:
    reply = server.predict("ranker", {"input": QUERY, "pair": text, "truncate": 32})
    assert reply.status_code == 200, reply.text
    score: float = reply.json()["LABEL_0"]
    return score


def test_every_way_has_the_same_scores(server: RunningServer) -> None:
    scores = [scored(server, text) for text in TEXTS]
    best = sorted(range(len(TEXTS)), key=lambda place: -scores[place])
    asked = {"query": QUERY, "texts": TEXTS, "truncate": True}
    teis = server.inference.post("/rerank", json=asked).json()
    assert [(one["index"], one["score"]) for one in teis] == [
        (place, pytest.approx(scores[place], abs=1e-5)) for place in best
    ]
    with Client(server.info["inference"], key=server.keys and server.keys["inference"]["key"]) as client:
        ranked = client.rerank("ranker", QUERY, TEXTS, top_n=3)
        assert [one.index for one in ranked] == best[:3]
        assert [one.score for one in ranked] == [pytest.approx(scores[place], abs=1e-5) for place in best[:3]]


def test_labels(server: RunningServer) -> None:
    reply = server.inference.post("/predict", json={"inputs": [["the cat"], ["a dog", "a mat"]], "model": "labels"})
    assert reply.status_code == 200, reply.text
    for one in reply.json():
        assert {label["label"] for label in one} == LABELS.keys()
        assert sum(label["score"] for label in one) == pytest.approx(1, abs=1e-5)


def test_vllms_routes(server: RunningServer) -> None:
    asked = {"model": "ranker", "text_1": QUERY, "text_2": TEXTS, "truncate_prompt_tokens": -1}
    scored = server.inference.post("/score", json=asked).json()["data"]
    given = {"model": "ranker", "query": QUERY, "documents": TEXTS}
    ranked = server.inference.post("/v1/rerank", json=given).json()["results"]
    scores = {one["index"]: one["relevance_score"] for one in ranked}
    assert [one["score"] for one in scored] == [pytest.approx(scores[place], abs=1e-5) for place in range(len(TEXTS))]
    (found,) = server.inference.post("/classify", json={"model": "labels", "input": "the cat"}).json()["data"]
    assert found["num_classes"] == len(LABELS)
    assert found["label"] in LABELS


def test_what_is_too_long_and_what_is_not_offered(server: RunningServer) -> None:
    long = server.inference.post("/rerank", json={"query": QUERY, "texts": TEXTS})
    assert (long.status_code, "32 tokens (maxInputTokens)" in long.text) == (422, True)
    wrong = server.inference.post("/v1/rerank", json={"model": "labels", "query": QUERY, "documents": TEXTS})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "unsupported_operation")
    assert "reranker" in server.inference.get("/info").json()["model_type"]
