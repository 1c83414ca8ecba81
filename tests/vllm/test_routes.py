"""Routes of vLLM's and Cohere's clients, answered by the handler of vLLM with a stub of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msx_core.generation.wire import encode
from msx_sdk.generation import CLASSIFY, EMBED, TOKENIZE
from msx_sdk.testing import LocalModel
from msx_vllm.handler import VllmHandler
from tests.frontend.generation.speaker import Speaker
from tests.loops import run

VECTOR = [3.0, 3.0, 0.0, 4.0]
"""The stub's of `ab`."""


@pytest.fixture
def model(stub: None, here: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalModel]:
    from vllm.v1.engine.async_llm import AsyncLLM

    monkeypatch.setattr(AsyncLLM, "tasks", [task])
    with LocalModel(VllmHandler, here, config={}) as model:
        yield model


def reply_of(model: LocalModel, path: str, body: dict[str, Any]) -> Any:
    offered = model.handler.owner.capabilities()
    asked = Speaker(models={"m": offered})

    async def ask() -> None:
        asked.begin(path, body)
        await asked.next_job()

    run(ask())
    told = [encode(_answered(model, job.kind, message)) for job, message in zip(asked.jobs, asked.asked, strict=True)]

    async def answer() -> Any:
        return await Speaker([[one] for one in told], models={"m": offered}).ask(path, body)

    exchange = run(answer())
    assert exchange.status == 200, exchange.body
    return exchange.json


def _answered(model: LocalModel, operation: str, message: Any) -> Any:
    handler, loop = model.handler.owner, model._loop
    pooling = handler.llm.pooling
    if operation == TOKENIZE:
        return loop.run_until_complete(handler.tokenize(message, model.context))
    made = {EMBED: pooling.embed, CLASSIFY: pooling.classify}[operation]
    return loop.run_until_complete(made(message, "r"))


@pytest.mark.parametrize("task", ["embed"])
def test_a_model_of_vectors(model: LocalModel, task: str) -> None:
    found = reply_of(model, "/pooling", {"input": "ab", "use_activation": False})["data"][0]["data"]
    assert found == VECTOR
    (vector,) = reply_of(model, "/v2/embed", {"texts": ["ab"], "truncate": "NONE"})["embeddings"]["float"]
    assert vector == VECTOR
    (one,) = reply_of(model, "/score", {"text_1": "ab", "text_2": "ab"})["data"]
    assert one["score"] == pytest.approx(1)
    assert reply_of(model, "/v1/tokenize", {"text": "ab"})["token_strings"]


@pytest.mark.parametrize("task", ["classify"])
def test_a_model_of_labels(model: LocalModel, task: str) -> None:
    (one,) = reply_of(model, "/classify", {"input": "ab"})["data"]
    assert one["num_classes"] == len(one["probs"])
    assert reply_of(model, "/pooling", {"input": "ab"})["data"][0]["data"] == one["probs"]
