from __future__ import annotations

from typing import Any

import pytest

from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import ALL, Speaker
from tests.loops import run

RANKER = Capabilities(classify=True, rerank=True, max_input_tokens=50)
PYTHON, JAVASCRIPT = "cohere", "cohere-ai"


def asked(path: str, library: str = PYTHON) -> Any:
    async def test() -> Any:
        speaker = Speaker(models={"m": ALL, "ranker": RANKER})
        speaker.versions["m"].aliases = ("other",)
        return await speaker.begin(path, method="GET", **{"x-fern-sdk-name": library}).finish()

    return run(test())


@pytest.mark.parametrize("library", [PYTHON, JAVASCRIPT])
def test_models_have_each_of_their_names(library: str) -> None:
    models = {one["name"]: one for one in asked("/v1/models", library).json["models"]}
    assert list(models) == ["m", "other", "ranker"]
    assert models["other"]["endpoints"] == ["chat", "embed", "generate"]
    assert (models["m"]["context_length"], models["ranker"]["context_length"]) == (200, 50)


def test_models_of_an_endpoint() -> None:
    assert [one["name"] for one in asked("/v1/models?endpoint=rerank").json["models"]] == ["ranker"]


def test_one_model() -> None:
    assert asked("/v1/models/m").json["name"] == "m"
    assert asked("/v1/models/crow").status == 404


def test_others_get_openais_form() -> None:
    assert asked("/v1/models", "other").json["object"] == "list"


def test_errors_are_in_cohere_s_form() -> None:
    assert list(asked("/v1/models/crow").json) == ["message"]
    assert list(asked("/v1/models/crow", "other").json) == ["error"]
