"""Vectors and scores, with a stub of vLLM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msx_sdk.errors import HandlerLoadError, InvalidInput
from msx_sdk.generation import ClassifyRequest, EmbedRequest
from msx_sdk.testing import LocalModel
from msx_vllm.handler import VllmHandler


@pytest.fixture
def task() -> str:
    return "embed"


@pytest.fixture
def model(stub: None, here: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalModel]:
    from vllm.v1.engine.async_llm import AsyncLLM

    monkeypatch.setattr(AsyncLLM, "tasks", [task])
    with LocalModel(VllmHandler, here) as model:
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
        ({"prompt_name": "query"}, "prompt_name: --handler vllm knows no prompts of models"),
        ({"dimensions": 5}, "dimensions: 5 is more than the 4 of this model"),
    ],
)
def test_vectors_that_are_refused(model: LocalModel, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        vector(model, input="ab", **request_)


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
