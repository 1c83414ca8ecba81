"""Where llm-serving's routes and TorchServe's begin alike."""

from __future__ import annotations

from typing import cast

import pytest

from msx_frontend.apis.llm_serving.family import llm_serving
from msx_frontend.generation.text_models import TextModels
from msx_frontend.models.registry import Registry
from msx_net.http.router import Router
from msx_sdk.generation import Capabilities
from tests.frontend.apis.families import all_families
from tests.frontend.generation.speaker import Speaker, words
from tests.loops import run
from tests.net.http.exchanges import TORCHSERVE

MERGED = Router(all_families(), all_families()[0])


@pytest.mark.parametrize(
    ("method", "path", "family"),
    [
        ("POST", "/models/m", "llm-serving"),
        ("POST", "/models/m/generate", "llm-serving"),
        ("POST", "/models/m/generate_stream", "llm-serving"),
        ("GET", "/models/m", "TorchServe management"),
        ("DELETE", "/models/m", "TorchServe management"),
        ("PUT", "/models/m/generate", "TorchServe management"),
        ("GET", "/models/m/generate", "TorchServe management"),
        ("POST", "/models/m/invoke", "TorchServe"),
        ("POST", "/models", "TorchServe management"),
    ],
)
def test_on_one_address_management_keeps_its_routes(method: str, path: str, family: str) -> None:
    found = MERGED.find(method, path)
    assert found.route is not None
    assert found.family.name == family


@pytest.mark.parametrize("path", ["/models/m", "/models/m/generate", "/models/m/generate_stream"])
def test_where_no_model_generates_the_paths_are_torchserves(path: str) -> None:
    async def test() -> None:
        exchange = await Speaker([words("a")], models={"m": Capabilities(embed=True)}).ask(path, {"inputs": "x"})
        assert (exchange.status, exchange.json["type"]) == (404, "ResourceNotFoundException")

    run(test())


@pytest.mark.parametrize(
    ("model", "family"), [("speaks", "llm-serving"), ("counts", "MindSpore Serving"), ("none", "MindSpore Serving")]
)
def test_generated_stream_of_a_model_that_does_not_generate_is_a_method(model: str, family: str) -> None:
    speaker = Speaker(models={"speaks": Capabilities(generate=True), "counts": Capabilities(embed=True)})
    texts = TextModels(cast(Registry, speaker))
    router = Router(
        [*(one for one in all_families() if one.name == "MindSpore Serving"), llm_serving(texts)], TORCHSERVE
    )
    assert router.find("POST", f"/model/{model}:generated_stream").family.name == family


def test_while_a_model_loads_they_wait_for_it() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], models={"m": None})
        assert speaker.router.find("POST", "/models/m/generate").family.name == "llm-serving"

    run(test())
