"""Vectors and scores, with a stub of vLLM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.generation import ClassifyRequest, EmbedRequest
from msx_sdk.testing import LocalModel
from msx_vllm.checks import INPUT, too_long
from msx_vllm.handler import VllmHandler

PROMPTS = {"prompts": {"query": "q: ", "passage": "text: "}, "default_prompt_name": "passage"}
TEMPLATE = "{{ messages[0].content }}|{{ messages[1].content }}?!"


@pytest.fixture
def task() -> str:
    return "embed"


@pytest.fixture
def files() -> dict[str, Any]:
    return {}


@pytest.fixture
def config() -> dict[str, Any]:
    return {}


@pytest.fixture
def model(
    stub: None,
    here: Path,
    task: str,
    files: dict[str, Any],
    config: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LocalModel]:
    for name, value in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(json.dumps(value))
    from vllm.v1.engine.async_llm import AsyncLLM

    monkeypatch.setattr(AsyncLLM, "tasks", [task])
    with LocalModel(VllmHandler, here, config=config) as model:
        yield model


def asked(model: LocalModel) -> Any:
    return model.handler.owner.llm._engine.pooled[-1]


def vector(model: LocalModel, **request: Any) -> list[float]:
    made = model.handler.owner.llm.pooling.embed(EmbedRequest(**request), "r")
    reply = model._loop.run_until_complete(made)
    return list(np.frombuffer(reply.embedding, "<f4"))


def scores(model: LocalModel, **request: Any) -> tuple[float, ...]:
    made = model.handler.owner.llm.pooling.classify(ClassifyRequest(**request), "r")
    found: tuple[float, ...] = model._loop.run_until_complete(made).scores
    return found


def test_a_model_of_vectors_is_announced(model: LocalModel) -> None:
    found = model.handler.owner.capabilities()
    assert (found.embed, found.generate, found.classify, found.embedding_size) == (True, False, False, 4)


def test_a_vector(model: LocalModel) -> None:
    assert vector(model, input="ab", normalize=False) == [3, 3, 0, 4]
    assert (asked(model).task, asked(model).use_activation) == ("embed", False)


def test_the_first_dimensions_are_normalized_again(model: LocalModel) -> None:
    assert np.linalg.norm(vector(model, input="ab", dimensions=2)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"prompt_name": "query"}, "prompt_name: the model has no prompt 'query'; it has none"),
        ({"dimensions": 5}, "dimensions: 5 is more than the 4 of this model"),
    ],
)
def test_vectors_that_are_refused(model: LocalModel, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        vector(model, input="ab", **request_)


def test_errors_have_the_request_s_name_of_the_text(model: LocalModel) -> None:
    with pytest.raises(InvalidInput, match="input: 99999 is not a token of this model"):
        vector(model, input=(99_999,))
    with pytest.raises(InvalidInput, match="input: it has no tokens"):
        vector(model, input=())
    beginning = "This model's maximum context length is 256 tokens (vllm.max_model_len)"
    assert too_long(None, 256, INPUT).startswith(f"input: {beginning}; the input has more than 256. ")
    assert too_long(None, 256).startswith(
        f"prompt: {beginning}, of which a prompt has 255 at most; the prompt has more"
    )


@pytest.mark.parametrize("files", [{"config_sentence_transformers.json": PROMPTS}])
def test_the_prompts_of_a_model(model: LocalModel, files: dict[str, Any]) -> None:
    assert vector(model, input="ab", normalize=False)[0] == 1 + len("text: ab")
    assert vector(model, input="ab", normalize=False, prompt_name="query")[0] == 1 + len("q: ab")
    assert vector(model, input=(97,), normalize=False)[0] == 1
    assert model.handler.owner.capabilities().prompts == ("query", "passage")
    with pytest.raises(InvalidInput, match="prompt_name: the model has no prompt 'x'; it has passage, query"):
        vector(model, input="ab", prompt_name="x")
    with pytest.raises(InvalidInput, match="prompt_name: only before a text, not before token ids"):
        vector(model, input=(97,), prompt_name="query")


@pytest.mark.parametrize("task", ["classify"])
@pytest.mark.parametrize("config", [{"classification": {"template": TEMPLATE, "answers": ["yes", "no"]}}])
def test_a_pair_in_a_template(model: LocalModel, task: str, config: dict[str, Any]) -> None:
    assert scores(model, input="ab", pair="cde")[0] == len("ab|cde?!")
    assert scores(model, input="ab", pair="cde", truncate=6)[0] == 6
    args = model.handler.owner.llm._engine.args
    assert (args.runner, args.convert) == ("pooling", "classify")
    assert args.hf_overrides == {"classifier_from_token": ["no", "yes"], "method": "from_2_way_softmax"}
    with pytest.raises(InvalidInput, match="truncate: expected at least 2: so many tokens stand behind the pair"):
        scores(model, input="ab", pair="cde", truncate=1)
    with pytest.raises(InvalidInput, match="truncate_left: a template stands around the pairs of this model"):
        scores(model, input="ab", pair="cde", truncate=6, truncate_left=True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"classification": {"answers": ["yes"]}}, "classification.template: needed: the model answers with a word"),
        (
            {"classification": {"template": "x"}},
            "classification.template: of messages with the roles query and document",
        ),
        (
            {"classification": {"template": TEMPLATE, "answers": ["yes"]}, "vllm": {"hf_overrides": "{"}},
            "vllm.hf_overrides: '{' is not JSON",
        ),
    ],
)
def test_answers_that_are_refused(stub: None, here: Path, config: dict[str, Any], message: str) -> None:
    with pytest.raises(HandlerLoadError, match=re.escape(message)), LocalModel(VllmHandler, here, config=config):
        pass


@pytest.mark.parametrize("task", ["classify"])
def test_a_pair_is_scored_with_the_kinds_of_its_tokens(model: LocalModel, task: str) -> None:
    assert scores(model, input="ab", pair="cde", scale="logit")[0] == 6
    assert asked(model).extra_kwargs == {"compressed_token_type_ids": 3}
    assert asked(model).use_activation is False
    assert model.handler.owner.capabilities().labels == ("bad", "good")


@pytest.mark.parametrize("task", ["classify"])
def test_a_text_is_scored(model: LocalModel, task: str) -> None:
    assert scores(model, input="ab")[0] == 3
    with pytest.raises(InvalidInput, match="input: expected a text beside a second one"):
        scores(model, input=(97,), pair="b")


@pytest.mark.parametrize("task", ["plugin"])
def test_a_model_of_another_kind_is_not_loaded(
    stub: None, here: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.v1.engine.async_llm import AsyncLLM

    monkeypatch.setattr(AsyncLLM, "tasks", [task])
    with pytest.raises(HandlerLoadError, match="of this model vLLM makes plugin"), LocalModel(VllmHandler, here):
        pass
