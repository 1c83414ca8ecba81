"""Paths, methods and tokens of the language models' routes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msx_core.service_errors import InvalidKey
from msx_frontend.apis.kserve.family import kserve_generate
from msx_frontend.apis.llm_serving.family import llm_serving
from msx_frontend.apis.openai.family import openai
from msx_frontend.apis.tei.family import tei
from msx_frontend.apis.tgi.family import tgi
from msx_frontend.generation.text_models import TextModels
from msx_frontend.keys.key import Key
from msx_net.http.family import Family, Route
from msx_sdk.generation import Capabilities
from tests.frontend.generation.speaker import Speaker, words
from tests.frontend.keys.some import SELDOM, some_key
from tests.frontend.net.predictions import FakeRegistry, as_registry
from tests.loops import run

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {"llm-serving": ("from-llm-serving.md",), "OpenAI": ("language-models.md", "responses.md", "batches.md")}
"""The pages of a family whose routes are not all in language-models.md."""
TEXTS = TextModels(as_registry(FakeRegistry()))
ROUTES = [
    (family, route)
    for family in (openai(TEXTS), tgi(TEXTS), tei(TEXTS), kserve_generate(TEXTS), llm_serving(TEXTS))
    for route in family.routes
]
UNDESCRIBED = {"/v1/models/{model:path}", "/openai/v1/models/{model:path}"}
EXACT = [(family, route.path) for family, route in ROUTES if "{" not in route.path and route.path != "/"]


def deny(given: str | None) -> Key:
    if given != "Bearer right":
        raise InvalidKey("Token Authorization failed.")
    return some_key()


@pytest.mark.parametrize(
    ("family", "route"),
    [(family, route) for family, route in ROUTES if route.summary],
    ids=lambda one: one.path if isinstance(one, Route) else one.name,
)
def test_every_route_is_in_the_docs(family: Family, route: Route) -> None:
    page = "".join((DOCS / name).read_text() for name in PAGES.get(family.name, ("language-models.md",)))
    path = route.path.replace("/versions/{version}", "").replace(
        "v2/models/{model}/", r"v2/models/{model}[/versions/{version}]/"
    )
    path = re.sub("^/(openai/)?v1/", "/[openai/]v1/", path)
    assert re.search(rf"^\| {route.method} \| `{re.escape(path)}` \|", page, re.MULTILINE), path


def test_every_route_is_described() -> None:
    assert {route.path for _, route in ROUTES if not route.summary} == UNDESCRIBED


@pytest.mark.parametrize(("family", "path"), EXACT, ids=lambda one: one if isinstance(one, str) else one.name)
def test_another_method_is_refused_in_the_familys_shape(family: Family, path: str) -> None:
    async def test() -> None:
        exchange = await Speaker().ask(path, method="DELETE")
        assert exchange.status == 405
        if family.name == "OpenAI":
            assert exchange.json["error"]["code"] == "method_not_supported"
        else:
            assert exchange.json["error_type"] == "method_not_allowed"

    run(test())


@pytest.mark.parametrize(("method", "path"), [("GET", "/ping"), ("POST", "/v2/models/m")])
def test_paths_of_others_are_left_alone(method: str, path: str) -> None:
    async def test() -> None:
        exchange = await Speaker().ask(path, method=method)
        assert exchange.json["type"] == "ResourceNotFoundException"  # the app behind has no routes here

    run(test())


def test_root_is_tgis_only_where_a_model_generates() -> None:
    async def test() -> None:
        body = {"inputs": "x"}
        assert (await Speaker([words("a")]).ask("/", body)).json == [{"generated_text": "a"}]
        plain = await Speaker(models={"m": Capabilities()}).ask("/", body)
        assert plain.json["type"] == "ResourceNotFoundException"

    run(test())


def test_a_browser_may_ask_first() -> None:
    async def test() -> None:
        exchange = await Speaker(check_token=deny).ask("/v1/chat/completions", method="OPTIONS")
        assert (exchange.status, exchange.headers["allow"], exchange.body) == (204, "POST, OPTIONS", b"")
        assert (await Speaker().ask("/v1/audio", method="OPTIONS")).status == 404

    run(test())


def test_an_unknown_path_of_openai() -> None:
    async def test() -> None:
        exchange = await Speaker().ask("/v1/audio")
        assert (exchange.status, exchange.json["error"]["code"]) == (404, "unknown_url")

    run(test())


def test_tokens() -> None:
    async def test() -> None:
        speaker = Speaker([words("a")], check_token=deny)
        openai = await speaker.ask("/v1/completions", {"prompt": "x"})
        assert (openai.status, openai.json["error"]["code"]) == (401, "invalid_api_key")
        wrong = await speaker.ask("/generate", {"inputs": "x"}, authorization="Bearer wrong")
        assert (wrong.status, wrong.json["error_type"]) == (401, "unauthorized")
        kserve = await speaker.ask("/v2/models/m/generate", {"text_input": "x"})
        assert (kserve.status, kserve.json) == (401, {"error": "Token Authorization failed."})
        assert (await speaker.ask("/health", method="GET")).status == 200
        assert speaker.jobs == []
        right = await speaker.ask("/v1/completions", {"prompt": "x"}, authorization="Bearer right")
        assert right.status == 200

    run(test())


def test_a_key_for_some_models() -> None:
    async def test() -> None:
        models: dict[str, Capabilities | None] = {"m": Capabilities(generate=True), "n": Capabilities(generate=True)}
        key = some_key("team-a", models=("m",))
        speaker = Speaker([words("a")], models=models, check_token=lambda given: key)
        assert (await speaker.ask("/v1/completions", {"model": "m", "prompt": "x"})).status == 200
        openai = await speaker.ask("/v1/completions", {"model": "n", "prompt": "x"})
        assert (openai.status, openai.json["error"]["code"]) == (403, "model_not_allowed")
        assert openai.json["error"]["message"] == 'The key "team-a" is not for model n, but for: m (api_keys_file).'
        listed = (await speaker.ask("/v1/models", method="GET")).json
        assert ([one["id"] for one in listed["data"]], listed["models"]) == (["m"], ["m"])
        assert (await speaker.ask("/v1/models/n", method="GET")).status == 403
        unnamed = await speaker.ask("/v1/completions", {"prompt": "x"})
        assert (unnamed.status, unnamed.json["model"]) == (200, "m"), "the only one that the key sees"
        unknown = await speaker.ask("/v1/completions", {"model": "k", "prompt": "x"})
        assert (unknown.status, unknown.json["error"]["code"]) == (403, "model_not_allowed")
        assert speaker.log.keys == ["team-a"] * 6

    run(test())


def test_a_rate() -> None:
    async def test() -> None:
        key = some_key("team-a", rate=SELDOM)
        speaker = Speaker([words("a")], check_token=lambda given: key)
        assert (await speaker.ask("/v1/completions", {"prompt": "x"})).status == 200
        refused = await speaker.ask("/v1/completions", {"prompt": "x"})
        assert (refused.status, refused.json["error"]["code"]) == (429, "rate_limit_exceeded")
        assert "retry-after" in refused.headers

    run(test())


@pytest.mark.parametrize("path", ["/v2/models/m/generate", "/v2/models/m/versions/1.0/generate_stream"])
def test_names_in_a_path(path: str) -> None:
    async def test() -> None:
        speaker = Speaker([words("a")])
        assert (await speaker.ask(path, {"text_input": "x"})).status == 200
        assert [(job.model_name, job.version) for job in speaker.jobs] == [("m", "1.0")]
        assert (await speaker.ask(path.replace("/m/", "/n/"), {"text_input": "x"})).status == 404

    run(test())


def test_the_head_of_a_list_and_of_a_route_that_runs_a_model() -> None:
    async def test() -> None:
        listed = await Speaker().ask("/v1/models", method="HEAD")
        assert (listed.status, listed.headers["content-type"]) == (200, "application/json")
        refused = await Speaker().ask("/v1/completions", method="HEAD")
        assert (refused.status, refused.headers["allow"]) == (405, "POST, OPTIONS")

    run(test())
