"""An embedding model, packed as it comes from a hub, behind the server's routes."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("mindspore")

from msx_archiver.options import PackOptions  # noqa: E402
from msx_archiver.pack import pack  # noqa: E402
from tests.e2e.server import RunningServer, new_store, run_server  # noqa: E402
from tests.llm.embedding.checkpoints import HIDDEN, write_checkpoint, write_modules  # noqa: E402

pytestmark = [pytest.mark.e2e, pytest.mark.mindspore]

CONFIG = "slotBuckets: [1, 8]\ncontextBuckets: [32]\nmaxInputTokens: 64\n"
TEXTS = ["the cat sat on a mat" + " dogs" * (number % 11) + " with" * number for number in range(32)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("embedding")
    checkpoint = write_checkpoint(folder / "bert")
    write_modules(checkpoint, pooling_mode_mean_tokens=True)
    (folder / "config.yaml").write_text(CONFIG)
    pack(
        PackOptions(
            model_name="bert",
            handler="embedding",
            extra_files=str(checkpoint),
            config_file=str(folder / "config.yaml"),
            export_path=new_store(folder),
        )
    )
    with run_server(folder, "--models", "bert.mar") as running:
        yield running


def embed(server: RunningServer, text: str) -> Any:
    reply = server.predict("bert", {"input": text})
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    return np.array(reply.json())


def test_a_prediction_is_a_list_of_numbers(server: RunningServer) -> None:
    vector = embed(server, TEXTS[0])
    assert vector.shape == (HIDDEN,)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    plain = server.predict("bert", TEXTS[0], headers={"content-type": "text/plain"})
    np.testing.assert_allclose(plain.json(), vector, atol=1e-6)


def test_what_the_model_offers_is_announced(server: RunningServer) -> None:
    described = server.inference.get("/v1/models").json()
    assert [model["id"] for model in described["data"]] == ["bert"]


def test_many_at_once_get_what_each_gets_alone(server: RunningServer) -> None:
    alone = [embed(server, text) for text in TEXTS]
    with ThreadPoolExecutor(len(TEXTS)) as pool:
        together = list(pool.map(lambda text: embed(server, text), TEXTS))
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3


def test_openais_route(server: RunningServer) -> None:
    reply = server.inference.post("/v1/embeddings", json={"model": "bert", "input": TEXTS})
    assert reply.status_code == 200, reply.text
    body = reply.json()
    assert [item["index"] for item in body["data"]] == list(range(32))
    vectors = [item["embedding"] for item in body["data"]]
    np.testing.assert_allclose(vectors, [embed(server, text) for text in TEXTS], atol=1e-5)
    assert body["usage"]["prompt_tokens"] == sum(8 + 2 * (n % 11) + n for n in range(32))


def test_openais_route_in_base64_with_fewer_dimensions(server: RunningServer) -> None:
    asked = {"model": "bert", "input": TEXTS[0], "encoding_format": "base64", "dimensions": 8}
    (item,) = server.inference.post("/v1/embeddings", json=asked).json()["data"]
    first = embed(server, TEXTS[0])[:8]
    vector = struct.unpack("<8f", base64.b64decode(item["embedding"]))
    np.testing.assert_allclose(vector, first / np.linalg.norm(first), atol=1e-6)


def test_what_is_too_long_is_refused_with_the_limit(server: RunningServer) -> None:
    sentence = (
        "input: This model's maximum context length is 64 tokens (maxInputTokens); the input has 72. Input "
        "tokens exceed the configured limit: shorten or truncate it."
    )
    reply = server.predict("bert", {"input": "cat " * 70})
    assert (reply.status_code, sentence in reply.text) == (400, True), reply.text
    cut = server.predict("bert", {"input": "cat " * 70, "truncate": 6})
    np.testing.assert_allclose(cut.json(), embed(server, "cat cat cat cat"), atol=1e-6)
    reply = server.inference.post("/v1/embeddings", json={"model": "bert", "input": ["cat", "cat " * 70]})
    assert (reply.status_code, sentence in reply.text) == (400, True), reply.text


def test_an_embedding_model_does_not_generate(server: RunningServer) -> None:
    reply = server.inference.post("/v1/completions", json={"model": "bert", "prompt": "cat"})
    assert 400 <= reply.status_code < 500, reply.text
