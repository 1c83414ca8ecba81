from __future__ import annotations

from typing import Any

import pytest

from msx_core.service_errors import InvalidKey
from msx_net.keys import ClientKey
from msx_sdk.generation import AdapterFiles, Capabilities
from tests.frontend.generation.speaker import ALL, Speaker
from tests.loops import run

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
        exchange = await speaker.ask("/v1/models/crow", method="GET")
        assert (exchange.status, exchange.json["error"]["code"]) == (404, "model_not_found")

    run(test())


def test_adapters_are_models_with_a_parent() -> None:
    async def test() -> None:
        speaker = Speaker(models={"m": Capabilities(generate=True, adapters=("packed",))})
        speaker.versions["m"].schema.adapters = {"org/sql": AdapterFiles(id="1", folder="/a", stamp="")}
        listed = (await speaker.ask("/v1/models", method="GET")).json["data"]
        assert [(one["id"], one.get("parent"), one.get("root")) for one in listed] == [
            ("m", None, None),
            ("m:packed", "m", "packed"),
            ("m:org/sql", "m", "org/sql"),
        ]
        for name in ("m:org/sql", "m:org/sql:latest"):
            assert (await speaker.ask(f"/v1/models/{name}", method="GET")).json == listed[2]
        assert (await speaker.ask("/v1/models/m:none", method="GET")).status == 404

    run(test())


def test_kserve_v1_is_on_the_same_paths() -> None:
    """Every model is in its list; one is ready while it has a worker."""

    async def test() -> None:
        speaker = Speaker(models=MODELS)
        assert (await speaker.ask("/v1/models", method="GET")).json["models"] == ["e", "m", "plain", "unknown"]
        assert (await speaker.ask("/v1/models/plain", method="GET")).json == {"name": "plain", "ready": True}
        speaker.versions["m"].workers.answer = False
        reply = (await speaker.ask("/v1/models/m", method="GET")).json
        assert (reply["id"], reply["name"], reply["ready"]) == ("m", "m", False)

    run(test())


def test_the_name_that_ollama_s_lists_show() -> None:
    async def test() -> None:
        reply = (await Speaker(models=MODELS).ask("/v1/models/m:latest", method="GET")).json
        assert reply["id"] == "m"

    run(test())


def listed(models: dict[str, Capabilities | None], query: str = "", **expected: int) -> Any:
    async def test() -> Any:
        exchange = await Speaker(models=models).ask(f"/v1/models{query}", method="GET", **VERSION)
        assert exchange.status == expected.get("status", 200), exchange.body
        return exchange.json

    return run(test())


VERSION = {"anthropic_version": "2023-06-01"}


def test_anthropics_clients_get_their_form() -> None:
    reply = listed({"m": ALL, "e": Capabilities(embed=True)})
    assert (reply["has_more"], reply["first_id"], reply["last_id"]) == (False, "e", "m")
    shown = {"type": "model", "id": "m", "display_name": "m", "created_at": "2023-11-14T22:13:20Z"}
    assert reply["data"][1] == {**shown, "max_input_tokens": 200}
    assert listed({"m": ALL}, "/m")["id"] == "m"
    assert listed({}) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [
        ("?limit=2", "ab", True),
        ("?limit=2&after_id=b", "cd", True),
        ("?after_id=b", "cde", False),
        ("?limit=2&before_id=e", "cd", True),
        ("?before_id=b", "a", False),
        ("?after_id=a&before_id=e&limit=2", "bc", True),
    ],
)
def test_pages_of_that_list(query: str, ids: str, more: bool) -> None:
    reply = listed(dict.fromkeys("abcde", ALL), query)
    assert ("".join(one["id"] for one in reply["data"]), reply["has_more"]) == (ids, more)


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?limit=x", "?after_id=z"])
def test_wrong_pages_are_refused(query: str) -> None:
    reply = listed({"m": ALL}, query, status=400)
    assert (reply["type"], reply["error"]["type"]) == ("error", "invalid_request_error")


def test_a_model_that_is_not_there_in_anthropic_s_form() -> None:
    reply = listed({"m": ALL}, "/crow", status=404)
    assert reply == {"type": "error", "error": {"type": "not_found_error", "message": reply["error"]["message"]}}


FORMS = {
    "anthropic-version": ("2023-06-01", "type"),
    "x-fern-sdk-name": ("cohere", "message"),
    "user-agent": ("OpenAI/Python", "error"),
}


@pytest.mark.parametrize("header", FORMS)
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m", "/v1/models/org/m", "/openai/v1/models"])
def test_a_missing_key_is_told_in_the_clients_form(path: str, header: str) -> None:
    def deny(given: str | None) -> ClientKey:
        raise InvalidKey("no key")

    async def test() -> None:
        value, member = FORMS[header]
        exchange = await Speaker(models=MODELS, check_token=deny).ask(path, method="GET", **{header: value})
        assert (exchange.status, next(iter(exchange.json))) == (401, member)
        assert ("request-id" in exchange.headers) == (member == "type")

    run(test())
