"""The descriptions against OpenAPI's rules, and against what is really routed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from msx_core.methods import MethodInfo
from msx_frontend.apis.torchserve.description import TITLE, description, managed_model_description, model_description
from msx_frontend.models.registration import Registration
from msx_frontend.models.schemas.body import body_schemas
from msx_net.http.family import Family, Route
from tests.frontend.apis.families import all_families, of_listener


def routes_of(families: Iterable[Family]) -> list[Route]:
    return [route for family in families for route in family.routes]


INFERENCE, MANAGEMENT, METRICS = (
    description(TITLE, routes_of(of_listener(name))) for name in ("inference", "management", "metrics")
)
MERGED = description(TITLE, routes_of(all_families()))
MANAGED = managed_model_description("m", routes_of(of_listener("management")))
DESCRIPTIONS = [INFERENCE, MANAGEMENT, METRICS, MERGED, model_description("m"), MANAGED]
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
Described = dict[str, Any]


def operations(description: Described) -> list[tuple[str, str, Described]]:
    return [(path, method, one) for path, methods in description["paths"].items() for method, one in methods.items()]


ALL = [operation for description in DESCRIPTIONS for operation in operations(description)]


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_a_description_has_what_openapi_demands(description: Described) -> None:
    assert description["openapi"] == "3.0.1"
    assert {"title", "version"} <= description["info"].keys()
    assert description["paths"]


@pytest.mark.parametrize(("path", "method", "operation"), ALL)
def test_an_operation_has_what_openapi_demands(path: str, method: str, operation: Described) -> None:
    assert path.startswith("/")
    assert method in METHODS
    assert operation["responses"]
    assert all(response["description"] for response in operation["responses"].values())
    parameters = operation.get("parameters", [])
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    assert in_path == re.findall(r"{(\w+)}", path)
    for one in parameters:
        assert one["in"] in ("path", "query")
        assert one["schema"]["type"] in ("string", "integer", "boolean")
        assert one["required"] or one["in"] == "query"


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_no_two_operations_have_one_id(description: Described) -> None:
    ids = [one["operationId"] for path, _, one in operations(description) if path != "/"]
    assert len(set(ids)) == len(ids)  # "/" is TorchServe's second name for the description, with its id


def test_a_page_does_not_call_itself_torchserves() -> None:
    assert not [one for one in DESCRIPTIONS if "TorchServe" in one["info"]["title"] + one["info"]["description"]]


def test_what_torchserve_described_is_described() -> None:
    for path in ("/ping", "/predictions/{model_name}", "/explanations/{model_name}/{model_version}", "/invocations"):
        assert path in INFERENCE["paths"]
    for path in ("/models", "/models/{model_name}/{model_version}/set-default", "/workflows/{workflow_name}", "/token"):
        assert path in MANAGEMENT["paths"]
    assert METRICS["paths"].keys() == {"/metrics"}


def test_a_registration_takes_what_is_described() -> None:
    parameters = MANAGEMENT["paths"]["/models"]["post"]["parameters"]
    fields = set(Registration.__struct_fields__) - {
        "adapters",
        "at_startup",
        "rows_compared",
        "servable",
        "sleep_level",
        "stage_workers",
    }
    assert {one["name"] for one in parameters} == fields
    assert [one["name"] for one in parameters if one["required"]] == ["url"]


def test_describe_takes_customized_with_and_without_a_version() -> None:
    paths = MANAGEMENT["paths"]
    for path in ("/models/{model_name}", "/models/{model_name}/{model_version}"):
        assert "customized" in [one["name"] for one in paths[path]["get"]["parameters"]]


def test_one_model() -> None:
    made = model_description("m")
    assert made["info"]["title"] == "RESTful API for: m"
    assert list(made["paths"]) == ["/predictions/m"]
    assert made["paths"]["/predictions/m"]["post"]["requestBody"]["required"]


def test_the_management_of_one_model() -> None:
    assert MANAGED["info"]["title"] == "RESTful Management API for: m"
    assert {"get", "put", "delete"} == MANAGED["paths"]["/models/m"].keys()


def test_a_merged_listener_has_everything() -> None:
    assert MERGED["paths"].keys() == INFERENCE["paths"].keys() | MANAGEMENT["paths"].keys() | METRICS["paths"].keys()


def test_a_model_with_types_has_their_schemas() -> None:
    schema = {"$ref": "#/$defs/Q", "$defs": {"Q": {"type": "object"}}}
    methods = (MethodInfo(name="", request_schema=schema), MethodInfo(name="classify", reply_schema=schema))
    described = model_description("m", [*body_schemas(None, methods)])
    assert described["openapi"] == "3.1.0"
    assert described["components"]["schemas"] == {"RequestQ": {"type": "object"}, "ClassifyReplyQ": {"type": "object"}}
    request = described["paths"]["/predictions/m"]["post"]["requestBody"]["content"]["application/json"]
    assert request == {"schema": {"$ref": "#/components/schemas/RequestQ"}, "example": {}}
    reply = described["paths"]["/predictions/m:classify"]["post"]["responses"]["200"]["content"]["application/msgpack"]
    assert reply == {"schema": {"$ref": "#/components/schemas/ClassifyReplyQ"}}
