"""OpenAPI 3.0.1 in TorchServe's form, made from the routes that a listener serves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msx_frontend import __version__
from msx_frontend.models.schemas.body import BodySchemas, bodies
from msx_frontend.models.schemas.shared import SharedSchemas
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.replies import json_reply
from msx_net.http.request import Request

TITLE = "MSX APIs"
_TEXT = "MSX serves models of MindSpore, on Ascend NPUs and on CPUs"


def described(families: Sequence[Family]) -> Family:
    """The two routes that describe `families`, all of one listener, and themselves."""
    every: list[Family] = []

    async def describe(request: Request) -> Reply:
        return json_reply(description(TITLE, (route for family in every for route in family.routes)))

    routes = (
        Route("OPTIONS", "/", describe, key=None, summary="This description", operation="apiDescription"),
        Route(
            "GET",
            "/api-description",
            describe,
            key=None,
            summary="This description",
            operation="apiDescription",
            any_method=True,
        ),
    )
    made = Family("descriptions", routes, torchserve_failure, closes_on_error=True)
    every += [made, *families]
    return made


def model_description(name: str, known: Sequence[BodySchemas] = ()) -> dict[str, Any]:
    """`known`: what is known of its bodies. Schemas are those of OpenAPI 3.1."""
    shared = SharedSchemas()
    paths = {f"/predictions/{name}": {"post": _predictions(name)}}
    for one in known:
        path = f"/predictions/{name}:{one.method}" if one.method else f"/predictions/{name}"
        paths[path] = {"post": _with_bodies(_predictions(name, one.method), one, shared)}
    made = _description(f"RESTful API for: {name}", paths)
    if known:
        made |= {"openapi": "3.1.0", "components": {"schemas": shared.schemas}}
    return made


def _with_bodies(operation: dict[str, Any], schemas: BodySchemas, shared: SharedSchemas) -> dict[str, Any]:
    prefix = "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", schemas.method))
    request, reply = bodies(schemas, shared, prefix)
    operation["requestBody"] = {"required": True, "content": request}
    operation["responses"] = {**operation["responses"], "200": {"description": "OK", "content": reply}}
    return operation


def _predictions(name: str, method: str = "") -> dict[str, Any]:
    if method:
        made = _operation("", "predictions", f"{method} of {name}", ())
        return made | {"operationId": f"predictions_{method}"}
    return _operation(f"/predictions/{name}", "predictions", f"Predict by {name}", ())


def managed_model_description(name: str, routes: Iterable[Route]) -> dict[str, Any]:
    """OpenAPI description of the management of one model."""
    own = [route for route in routes if route.path.startswith("/models/{model_name}")]
    return description(
        f"RESTful Management API for: {name}",
        (route._replace(path=route.path.replace("{model_name}", name)) for route in own),
    )


def description(title: str, routes: Iterable[Route]) -> dict[str, Any]:
    """`routes` without an operation are not described."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        if route.operation:
            made = _operation(route.path, route.operation, route.summary, route.queries)
            paths.setdefault(route.path, {}).setdefault(route.method.lower(), made)
    return _description(title, paths)


def _description(title: str, paths: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "openapi": "3.0.1",
        "info": {"title": title, "description": _TEXT, "version": __version__},
        "paths": paths,
    }


def _operation(path: str, operation: str, summary: str, queries: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", path)
    parameters = [_parameter(name, "path", "string") for name in names]
    parameters += [_parameter(name, "query", kind) for name, kind in queries]
    made: dict[str, Any] = {"summary": summary, "operationId": operation}
    if parameters:
        made["parameters"] = parameters
    if operation.endswith(_WITH_BODY):
        made["requestBody"] = {"required": True, "content": {"*/*": {"schema": _BINARY}}}
    made["responses"] = {"200": {"description": "OK"}, "default": {"description": "Error", "content": _ERROR}}
    return made


def _parameter(name: str, place: str, kind: str) -> dict[str, Any]:
    required = place == "path" or name == "url"
    return {"in": place, "name": name, "required": required, "schema": {"type": kind}}


_WITH_BODY = ("predictions", "explanations", "invocations", "invoke", "predict")
_BINARY = {"type": "string", "format": "binary"}
_ERROR = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["code", "type", "message"],
            "properties": {
                "code": {"type": "integer"},
                "type": {"type": "string"},
                "message": {"type": "string"},
            },
        }
    }
}
