"""/openapi.json of each listener is OpenAPI 3.1, and has every route that is not excused here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from msx_core import service_errors
from msx_frontend.apis.openapi.document import document
from msx_frontend.apis.openapi.schemas import prefix_of
from msx_frontend.apis.torchserve.description import described
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.request import Request
from msx_net.http.router import Router
from tests.frontend.apis.families import all_families, of_listener

REST = "OpenAPI has no names of several segments; the path with one segment is described"
NOT_SERVED = "answered by 501 and what to do instead"
CONSOLE = "what the page of the same version asks for; it may change with each version"
NOT_DESCRIBED = {
    **{f"/console/{path}": CONSOLE for path in ("events", "history", "lines", "model", "traces", "upload/{file_name}")},
    "/console": "a page for browsers",
    "/console/static/{digest}/{file:path}": "its files",
    "/playground": "a page for browsers",
    "/playground/models": CONSOLE,
    "/playground/static/{digest}/{file:path}": "its files",
    "/predictions/{model_name}//{url_path:path}": REST,
    "/explanations/{model_name}//{url_path:path}": REST,
    **{
        f"/predictions/{{model_name}}//v1/{path}": "the same without a version"
        for path in ("completions", "chat/completions", "models")
    },
    "/v1/models/{model:path}": REST,
    "/openai/v1/models/{model:path}": REST,
    "/metrics/{rest:path}": "TorchServe's: whatever stands behind /metrics means the same",
    "/v2/systemsharedmemory": NOT_SERVED,
    "/v2/systemsharedmemory/{rest:path}": NOT_SERVED,
    "/v2/cudasharedmemory": NOT_SERVED,
    "/v2/cudasharedmemory/{rest:path}": NOT_SERVED,
    "/v2/trace/setting": NOT_SERVED,
    "/v2/models/{model}/trace/setting": NOT_SERVED,
    "/v2/logging": NOT_SERVED,
    **{f"/api/{path}": "refused by name" for path in ("pull", "push", "create", "copy", "delete", "blobs/{digest}")},
}
LISTENERS = ["inference", "management", "metrics", "merged"]


def families(listener: str) -> list[Family]:
    own = all_families() if listener == "merged" else of_listener(listener)
    return [described(own), *own]


@cache
def made(listener: str, *, secured: bool = True) -> dict[str, Any]:
    """Once for all tests, which only read it."""
    own = families(listener)
    return document("MSX", Router(own, own[0]), secured=secured)


def operations(listener: str) -> dict[str, Any]:
    paths = made(listener)["paths"]
    return {f"{method} {path}": one for path, methods in paths.items() for method, one in methods.items()}


@pytest.mark.parametrize(
    ("listener", "secured"), [("merged", True), ("inference", False), ("management", True), ("metrics", False)]
)
def test_it_is_valid(listener: str, secured: bool) -> None:
    OpenAPIV31SpecValidator(made(listener, secured=secured)).validate()


def test_every_route_has_a_summary_or_an_excuse() -> None:
    without = {route.path for family in families("merged") for route in family.routes if not route.summary}
    assert without == NOT_DESCRIBED.keys()


@pytest.mark.parametrize("listener", LISTENERS)
def test_every_route_with_a_summary_is_there(listener: str) -> None:
    described = [route for family in families(listener) for route in family.routes if route.summary]
    router = Router(own := families(listener), own[0])
    there = {(one.route.method, one.route.path) for place in router.places() for one in place if one.route.summary}
    assert {(route.method, route.path) for route in described} - there <= {("GET", "/v1/models/{model_name}")}
    assert len(operations(listener)) == len(there)


BODIES = [
    (name, one["requestBody"]["content"]["application/json"])
    for name, one in operations("merged").items()
    if "application/json" in one.get("requestBody", {}).get("content", {})
]


@pytest.mark.parametrize(("operation", "body"), BODIES)
def test_bodies_have_an_example_that_fits(operation: str, body: dict[str, Any]) -> None:
    if body["schema"]:
        whole = {**body["schema"], "components": made("merged")["components"]}
        OAS31Validator(whole).validate(body["example"])


def test_replies_have_schemas() -> None:
    """Replies without a schema: only the handler knows, it is a description, or there is no body that is JSON."""
    without = {
        name for name, one in operations("merged").items() if not any(_schemas(one)) and not name.startswith("options")
    }
    assert {name for name in without if not name.startswith("post ")} == {
        "get /api-description",
        "get /cluster",
        "get /health",
        "get /jobs/{id}/events",
        "get /jobs/{id}/result",
        "get /management/jobs/{id}/result",
        "get /metrics",
        "get /openai/v1/files/{id}/content",
        "get /predictions/{model_name}/{model_version}/v1/models",
        "get /token",
        "get /v1/files/{id}/content",
    }
    assert all(re.search("predict|expl|invo|lora_adapter", name) for name in without if name.startswith("post "))


def _schemas(operation: dict[str, Any]) -> Iterator[Any]:
    for content in operation["responses"]["200"].get("content", {}).values():
        yield content["schema"] if content["schema"] != {"type": "string", "format": "binary"} else None


def test_keys() -> None:
    merged = operations("merged")
    assert merged["post /predictions/{model_name}"]["security"] == [{"inference": []}]
    assert merged["post /models"]["security"] == [{"management": []}]
    assert merged["get /livez"]["security"] == []
    assert merged["get /ping"]["security"] == [{"inference": []}, {"management": []}]
    schemes = made("merged")["components"]["securitySchemes"]
    assert {name: (one["type"], one["scheme"]) for name, one in schemes.items()} == {
        "inference": ("http", "bearer"),
        "management": ("http", "bearer"),
    }


def test_without_keys_none_is_asked_for() -> None:
    open_one = made("inference", secured=False)
    assert "securitySchemes" not in open_one["components"]
    assert not any("security" in one for methods in open_one["paths"].values() for one in methods.values())


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("post /predictions/{model_name}", ["code", "type", "message"]),
        ("get /v2/models/{model}", ["error"]),
        ("post /v1/completions", ["error"]),
        ("post /generate", ["error", "error_type"]),
    ],
)
def test_errors_are_those_of_the_family(operation: str, members: list[str]) -> None:
    components = made("inference")["components"]
    name = operations("inference")[operation]["responses"]["default"]["$ref"].rpartition("/")[2]
    schema = components["responses"][name]["content"]["application/json"]["schema"]
    assert components["schemas"][schema["$ref"].rpartition("/")[2]]["required"] == members


@pytest.mark.parametrize(
    "operation",
    [
        "post /model/{model}:generated_stream",
        "post /predictions/{model_name}/{model_version}/v1/completions",
        "get /predictions/{model_name}/{model_version}/v1/models",
    ],
)
def test_other_models_answer_the_same_path_as_they_do(operation: str) -> None:
    """A servable of MindSpore Serving, say, whose errors have its own form."""
    responses = operations("inference")[operation]["responses"]
    assert [*responses["default"]] == ["description"]
    assert responses["200"]["content"].keys() >= {"application/json", "application/octet-stream"}


@pytest.mark.parametrize("operation", ["post /api/chat", "post /api/generate"])
def test_replies_in_lines_have_their_type(operation: str) -> None:
    content = operations("inference")[operation]["responses"]["200"]["content"]
    assert content.keys() == {"application/json", "application/x-ndjson"}


ERRORS = [
    service_errors.ServiceError("it failed"),
    service_errors.BadRequest("top_p: it is 2"),
    service_errors.MalformedJson(b"{", ValueError("no")),
    service_errors.ModelNotFound("m"),
    service_errors.InvalidKey("no key"),
    service_errors.ServiceUnavailable("it ends"),
    service_errors.HandlerFailed(400, "the prompt is too long", "context_length_exceeded"),
    service_errors.HandlerFailed(418, "a teapot"),
    service_errors.WorkerDied("signal 9"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_fits_the_schema_of_its_family(error: service_errors.ServiceError) -> None:
    for listener in LISTENERS:
        components = made(listener)["components"]
        for family in families(listener):
            schema = components["schemas"].get(f"{prefix_of(family)}Error")
            if schema is not None:
                OAS31Validator(schema).validate(json.loads(family.failure(error).body))


@pytest.mark.parametrize(
    ("listener", "operation", "statuses"),
    [
        ("management", "post /models", ["200", "202", "default"]),
        ("management", "put /models/{model_name}", ["200", "202", "default"]),
        ("management", "put /models/{model_name}/{model_version}", ["200", "202", "default"]),
        ("management", "delete /models/{model_name}", ["200", "default"]),
        ("inference", "get /ping", ["200", "500", "default"]),
        ("inference", "get /readyz", ["200", "503", "default"]),
    ],
)
def test_replies_with_other_statuses_have_their_schema(listener: str, operation: str, statuses: list[str]) -> None:
    responses = operations(listener)[operation]["responses"]
    assert [*responses] == statuses
    assert all(responses[status]["content"] == responses["200"]["content"] for status in statuses[:-1])


def test_titles_are_the_names_of_components() -> None:
    """Clients make classes of titles: one of `Response` hides their own."""
    schemas = made("merged")["components"]["schemas"]
    assert {one["title"] for one in schemas.values() if "title" in one} <= schemas.keys()


def test_no_member_can_only_be_null() -> None:
    """The OpenAPI Generator (7.26) writes no Python client for such a member."""
    schemas = made("merged")["components"]["schemas"].items()
    members = [(name, *member) for name, schema in schemas for member in schema.get("properties", {}).items()]
    assert [(name, member) for name, member, one in members if one.get("type") == "null"] == []


def test_parameters() -> None:
    register = operations("management")["post /models"]
    assert {(one["in"], one["name"]) for one in register["parameters"]} >= {("query", "url"), ("query", "batch_size")}
    assert "url" in register["requestBody"]["content"]["application/json"]["schema"]["properties"]
    version = operations("inference")["get /v2/models/{model}/versions/{version}"]
    assert [(one["in"], one["name"], one["required"]) for one in version["parameters"]] == [
        ("path", "model", True),
        ("path", "version", True),
    ]


@pytest.mark.parametrize(
    "path", ["/predictions/{model_name}", "/v2/models/{model}/infer", "/v1/chat/completions", "/v1/completions"]
)
def test_requests_that_are_jobs_have_a_class(path: str) -> None:
    (header,) = [one for one in operations("inference")[f"post {path}"]["parameters"] if one["in"] == "header"]
    assert (header["name"], header["required"]) == ("x-msx-priority", False)
    assert set(header["schema"]["enum"]) == {"high", "normal", "low"}


@pytest.mark.parametrize(
    "operation",
    [
        "post /v1/completions",
        "post /v1/chat/completions",
        "post /v1/responses",
        "post /v1/messages",
        "post /v1/messages/count_tokens",
        "post /api/chat",
        "post /api/generate",
        "post /api/embed",
        "post /api/embeddings",
        "post /v1/embeddings",
        "post /v1/rerank",
        "post /embed",
        "post /predict",
        "post /rerank",
        "post /similarity",
        "post /generate",
        "post /generate_stream",
        "post /tokenize",
        "post /chat_tokenize",
        "post /v2/models/{model}/generate",
        "post /v2/models/{model}/infer",
    ],
)
def test_bodies_have_schemas(operation: str) -> None:
    schema = operations("inference")[operation]["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = made("inference")["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    assert schema["properties"]


@pytest.mark.parametrize(("method", "takes"), [("POST", True), ("PUT", True), ("GET", False)])
def test_a_plugins_route_takes_any_body(method: str, takes: bool) -> None:
    """Only the plugin knows what it takes."""

    async def answer(request: Request) -> Reply:
        return Reply(b"")

    own = Family("plugins", (Route(method, "/own", answer, summary="A plugin's"),), torchserve_failure)
    described = document("MSX", Router([own], own), secured=False)["paths"]["/own"][method.lower()]
    content = described.get("requestBody", {}).get("content", {})
    assert [*content] == (["application/json", "application/octet-stream"] if takes else [])
