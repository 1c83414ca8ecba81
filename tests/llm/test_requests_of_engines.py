"""MSX's own engine answers the requests of the table as vLLM's does (tests/vllm)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from msx_sdk.testing import LocalModel
from tests.llm.eager import without_graphs
from tests.vllm.cases import CASES, COMPUTED, REFUSED, Case, Refusal, Refused, ask
from tests.vllm.tiny_model import make_tiny_model

pytestmark = pytest.mark.mindspore
pytest.importorskip("mindspore")

CONFIG = {"maxConcurrent": 8, "mindspore": {"compileCache": False}}
"""The cache would be that of all tests behind these in the process."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    folder = make_tiny_model(tmp_path_factory.mktemp("llama") / "model")
    with without_graphs(), LocalModel("text_generation", folder, config=CONFIG) as model:
        yield model


@pytest.mark.parametrize("case", [*CASES, *COMPUTED], ids=lambda case: case.name)
def test_requests_that_every_engine_answers_alike(model: LocalModel, case: Case) -> None:
    deltas = ask(model, case.request, case.params)
    assert not isinstance(deltas, Refusal), deltas
    assert case.holds(deltas)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_requests_that_every_engine_refuses_alike(model: LocalModel, case: Refused) -> None:
    refusal = ask(model, case.request, case.params)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400
    assert re.match(case.message, refusal.message), refusal.message
