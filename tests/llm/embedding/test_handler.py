"""`--handler embedding` as the worker runs it: plain predictions, the operation, limits and what it announces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from msx_core.generation.wire import encode
from msx_llm.embedding.model import load_model
from msx_sdk.errors import HandlerLoadError
from msx_sdk.generation import EMBED, TOKENIZE, EmbedReply, EmbedRequest, TokenizeReply, TokenizeRequest
from msx_sdk.request import InferenceRequest, Part
from msx_sdk.testing import LocalModel, Reply
from tests.llm.eager import without_graphs
from tests.llm.embedding.checkpoints import HIDDEN, write_checkpoint, write_modules

pytestmark = pytest.mark.mindspore
ms = pytest.importorskip("mindspore")

GOLDENS = json.loads(Path(__file__).with_name("goldens.json").read_text())
CONFIG = {"slotBuckets": [1, 4], "contextBuckets": [8, 32]}
SENTENCES = ["the cat sat on a mat", "dogs", "the with statement", "a mat " * 12]


@pytest.fixture(autouse=True, scope="module")
def _without_graphs() -> Iterator[None]:
    """test_network has those of the same networks."""
    with without_graphs():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_checkpoint(tmp_path_factory.mktemp("bert"))
    write_modules(folder, max_length=48, pooling_mode_cls_token=True)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "the "}}))
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[LocalModel]:
    with LocalModel("embedding", folder, config=CONFIG) as model:
        yield model


def embed(model: LocalModel, *requests: EmbedRequest) -> list[Reply]:
    return model.predict(
        [
            InferenceRequest(f"embed-{n}", {"body": Part(encode(request))}, operation=EMBED)
            for n, request in enumerate(requests)
        ]
    )


def vector(reply: Reply) -> Any:
    assert reply.failure is None, reply.failure
    return np.frombuffer(msgspec.msgpack.decode(reply.body, type=EmbedReply).embedding, "<f4")


def test_a_plain_prediction_is_a_list_of_numbers(model: LocalModel) -> None:
    as_text, as_json, as_form = model.predict(
        [
            SENTENCES[0],
            {"input": SENTENCES[0]},
            InferenceRequest("form", {"input": Part(SENTENCES[0].encode(), "text/plain")}),
        ]
    )
    assert as_text.headers["content-type"] == "application/json"
    assert len(as_text.json()) == HIDDEN
    assert np.linalg.norm(as_text.json()) == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(as_json.json(), as_text.json(), atol=1e-6)
    np.testing.assert_allclose(as_form.json(), as_text.json(), atol=1e-6)


def test_the_operation_answers_with_float32(model: LocalModel) -> None:
    (reply,) = embed(model, EmbedRequest(input=SENTENCES[0]))
    assert msgspec.msgpack.decode(reply.body, type=EmbedReply).prompt_tokens == 8
    np.testing.assert_allclose(vector(reply), model.predict([SENTENCES[0]])[0].json(), atol=1e-6)


def test_many_at_once_get_what_each_gets_alone(model: LocalModel) -> None:
    requests = [EmbedRequest(input=SENTENCES[n % 4] + " cat" * (n % 5)) for n in range(32)]
    together = embed(model, *requests)
    for request, reply in zip(requests, together, strict=True):
        np.testing.assert_allclose(vector(reply), vector(embed(model, request)[0]), atol=1e-5)


def test_one_that_is_refused_leaves_its_neighbours_alone(model: LocalModel) -> None:
    good, long, dimensions = embed(
        model, EmbedRequest(input="cat"), EmbedRequest(input="cat " * 60), EmbedRequest(input="cat", dimensions=33)
    )
    assert vector(good).shape == (HIDDEN,)
    assert long.failure is not None
    assert (long.status, long.failure.message) == (
        400,
        "input: This model's maximum context length is 48 tokens (maxInputTokens); the input has 62. Input "
        "tokens exceed the configured limit: shorten or truncate it.",
    )
    assert dimensions.failure is not None
    assert (dimensions.status, dimensions.failure.message) == (400, "dimensions: 33 is more than the 32 of this model")


def test_a_very_long_text_is_cut(model: LocalModel) -> None:
    (reply,) = embed(model, EmbedRequest(input="cat " * 10_000, truncate=6))
    np.testing.assert_allclose(vector(reply), vector(embed(model, EmbedRequest(input="cat cat cat cat"))[0]), atol=1e-6)


def test_token_ids_are_taken(model: LocalModel) -> None:
    ids, text = embed(model, EmbedRequest(input=(2, 6, 3)), EmbedRequest(input="cat"))
    np.testing.assert_allclose(vector(ids), vector(text), atol=1e-6)


def test_dimensions_are_the_first_and_normalized_again(model: LocalModel) -> None:
    short, whole = embed(model, EmbedRequest(input="cat", dimensions=8), EmbedRequest(input="cat"))
    first = vector(whole)[:8]
    np.testing.assert_allclose(vector(short), first / np.linalg.norm(first), atol=1e-6)


def test_only_shapes_that_were_compiled_at_warm_up_are_run(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    network = model.handler.owner.model.network
    seen: list[tuple[Any, ...]] = []
    run = network._run

    def watched(ids: Any, *rest: Any) -> Any:
        seen.append(ids.shape)
        return run(ids, *rest)

    monkeypatch.setattr(network, "_run", watched)
    embed(model, *(EmbedRequest(input="cat " * (1 + 7 * n % 40)) for n in range(30)))
    assert len(seen) > 3
    assert set(seen) <= {(rows, length) for rows in (1, 4) for length in (8, 32, 48)}


def test_what_it_announces(model: LocalModel) -> None:
    assert model.predict([""], {"describe": "True"})[0].json() == {
        "embed": True,
        "tokenize": True,
        "model_id": "local",
        "model_type": "bert",
        "max_input_tokens": 48,
        "embedding_size": HIDDEN,
        "prompts": ["query"],
    }


def test_warm_up_reports_its_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phases: list[str] = []
    local = LocalModel("embedding", folder, config={"slotBuckets": [2], "contextBuckets": [8], "maxInputTokens": 16})
    local.context.report_progress = phases.append
    with local:
        pass
    assert phases == [
        "compiling 1 x 8 tokens (1 of 4)",
        "compiling 2 x 8 tokens (2 of 4)",
        "compiling 1 x 16 tokens (3 of 4)",
        "compiling 2 x 16 tokens (4 of 4)",
    ]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"maxInputTokens": 73}, "maxInputTokens: 73 is more than the model's context of 72 tokens"),
        ({"embedding": {"pooling": "first"}}, r"model-config.yaml, embedding.pooling: invalid enum value 'first'"),
        ({"embedding": {"poling": "cls"}}, r"model-config.yaml, embedding: object contains unknown field `poling`"),
    ],
)
def test_a_yaml_that_does_not_fit(folder: Path, config: dict[str, Any], text: str) -> None:
    with pytest.raises(HandlerLoadError, match=text), LocalModel("embedding", folder, config=config):
        pass


def test_the_yaml_may_allow_longer_texts_than_the_modules(folder: Path) -> None:
    config = {"maxInputTokens": 72, "slotBuckets": [1], "embedding": {"pooling": "mean", "normalize": False}}
    with LocalModel("embedding", folder, config=config) as model:
        (reply,) = embed(model, EmbedRequest(input="cat " * 70))
        assert np.linalg.norm(vector(reply)) > 2


def test_a_decoder_answers_with_its_last_state(tmp_path: Path) -> None:
    golden = GOLDENS["qwen3"][0]
    with LocalModel("embedding", write_checkpoint(tmp_path, "qwen3"), config={"slotBuckets": [1]}) as model:
        (reply,) = embed(model, EmbedRequest(input=tuple(golden["ids"])))
    last = np.array(golden["vectors"]["last"])
    np.testing.assert_allclose(vector(reply), last / np.linalg.norm(last), atol=1e-5)


def test_a_long_context_is_offered_only_where_the_yaml_wants_it(tmp_path: Path) -> None:
    context = LocalModel("embedding", write_checkpoint(tmp_path, "qwen3", max_position_embeddings=8192)).context
    assert load_model(context).longest == 2048
    for key, value in (("maxInputTokens", 4096), ("contextBuckets", [4096])):
        context.model_yaml_config = {key: value}
        assert load_model(context).longest == 4096


def test_a_call_has_no_more_tokens_than_pay_on_the_device(tmp_path: Path) -> None:
    context = LocalModel("embedding", write_checkpoint(tmp_path, "qwen3", max_position_embeddings=512)).context
    assert max(rows * length for rows, length in load_model(context).shapes) == 2048
    context.model_yaml_config = {"maxBatchTotalTokens": 4096}
    assert max(rows * length for rows, length in load_model(context).shapes) == 4096


def test_tokens_and_their_texts(model: LocalModel) -> None:
    def asked(**options: Any) -> TokenizeReply:
        body = {"body": Part(encode(TokenizeRequest(**options)))}
        (reply,) = model.predict([InferenceRequest("tokens", body, operation=TOKENIZE)])
        assert reply.failure is None, reply.failure
        return msgspec.msgpack.decode(reply.body, type=TokenizeReply)

    found = asked(prompt="cat")
    assert [one.id for one in found.tokens] == [2, 6, 3]
    assert found.special == {2: "[CLS]", 3: "[SEP]"}
    assert [asked(ids=(2, 6, 3), skip_special_tokens=skip).text for skip in (True, False)] == ["cat", "[CLS] cat [SEP]"]
