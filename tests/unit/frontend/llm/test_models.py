from __future__ import annotations

from msx_sdk.generation import Capabilities
from tests.unit.frontend.jobs import run
from tests.unit.frontend.llm.speaker import ALL, Speaker

MODELS = {"m": ALL, "e": Capabilities(embed=True), "plain": Capabilities(), "unknown": None}


def test_language_models_are_listed() -> None:
    async def test() -> None:
        reply = (await Speaker(models=MODELS).ask("/v1/models", method="GET")).json
        assert reply["object"] == "list"
        assert reply["data"] == [
            {"id": "e", "object": "model", "created": 1_700_000_000, "owned_by": "msx"},
            {"id": "m", "object": "model", "created": 1_700_000_000, "owned_by": "msx", "max_model_len": 200},
        ]

    run(test())


def test_one() -> None:
    async def test() -> None:
        speaker = Speaker(models=MODELS)
        assert (await speaker.ask("/v1/models/m", method="GET")).json["id"] == "m"
        for name in ("plain", "crow"):
            exchange = await speaker.ask(f"/v1/models/{name}", method="GET")
            assert (exchange.status, exchange.json["error"]["code"]) == (404, "model_not_found")

    run(test())
