"""The descriptions against OpenAPI's rules, and against what is really routed."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.routing import Match, Route

from msx_frontend.apis.torchserve.inference import InferenceRoutes
from msx_frontend.apis.torchserve.management import ManagementRoutes
from msx_frontend.apis.torchserve.openapi import (
    inference_description,
    managed_model_description,
    management_description,
    merged_description,
    metrics_description,
    model_description,
)
from msx_frontend.apis.workflows.routes import inference_routes, management_routes
from msx_frontend.models.registration import Registration
from msx_frontend.net.http.router import Router
from tests.unit.frontend.net.http.client import FakeRegistry, scope
from tests.unit.frontend.net.http.exchanges import predictions

DESCRIPTIONS = [
    inference_description(),
    management_description(),
    merged_description(),
    metrics_description(),
    model_description("m"),
    managed_model_description("m"),
]
UNUSED = cast(Any, None)
INFERENCE = InferenceRoutes(UNUSED, inference_routes(UNUSED, 1, 1)).app()
MANAGEMENT = ManagementRoutes(UNUSED, UNUSED, None, max_request_size=1, more=management_routes(UNUSED, 1)).app()
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


def routed(app: Starlette, path: str, method: str) -> bool:
    request = scope(method.upper(), re.sub(r"{\w+}", "x", path))
    return any(route.matches(request)[0] is Match.FULL for route in app.routes)


def _predicts(path: str) -> bool:
    family = predictions(FakeRegistry())
    return Router([family], family).find("POST", path).route is not None


def test_all_that_is_described_is_served() -> None:
    for path, method, _ in operations(inference_description()):
        assert routed(INFERENCE, path, method) or _predicts(re.sub(r"{\w+}", "x", path)), path
    for path, method, _ in operations(management_description()):
        assert routed(MANAGEMENT, path, method), path


def test_all_that_is_served_is_described() -> None:
    for app, description in ((INFERENCE, inference_description()), (MANAGEMENT, management_description())):
        described = {re.sub(r"{\w+}", "{}", path) for path in description["paths"]}
        for route in app.routes:
            assert isinstance(route, Route)
            path = re.sub(r"{[\w:]+}", "{}", route.path)
            assert path in described, path


def test_a_registration_takes_what_is_described() -> None:
    parameters = management_description()["paths"]["/models"]["post"]["parameters"]
    fields = set(Registration.__struct_fields__) - {"at_startup"}
    assert {one["name"] for one in parameters} == fields
    assert [one["name"] for one in parameters if one["required"]] == ["url"]


def test_describe_takes_customized_with_and_without_a_version() -> None:
    paths = management_description()["paths"]
    for path in ("/models/{model_name}", "/models/{model_name}/{model_version}"):
        assert "customized" in [one["name"] for one in paths[path]["get"]["parameters"]]


def test_one_model() -> None:
    description = model_description("m")
    assert description["info"]["title"] == "RESTful API for: m"
    assert list(description["paths"]) == ["/predictions/m"]
    assert description["paths"]["/predictions/m"]["post"]["requestBody"]["required"]


def test_the_management_of_one_model() -> None:
    description = managed_model_description("m")
    assert description["info"]["title"] == "RESTful Management API for: m"
    assert {"get", "put", "delete"} == description["paths"]["/models/m"].keys()


def test_a_merged_listener_has_everything() -> None:
    paths = merged_description()["paths"].keys()
    both = inference_description()["paths"].keys() | management_description()["paths"].keys()
    assert paths == both | {"/metrics"}
