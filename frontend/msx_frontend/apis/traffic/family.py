"""`/models/{model_name}/traffic`: canary releases, over the calls of `ModelApi`."""

from __future__ import annotations

from typing import Any

from msx_frontend.apis.traffic.calls import DividesTraffic
from msx_net.http.failures import own_failure
from msx_net.http.family import Family, Reply, Route
from msx_net.http.replies import STATUS_SCHEMA, json_reply, status_reply
from msx_net.http.request import Request

PATH = "/models/{model_name}/traffic"

WEIGHTS = {
    "type": "object",
    "additionalProperties": {"type": "number", "minimum": 0},
}
EXAMPLE = {"1.0": 90, "2.0": 10}
SHOWN: dict[str, Any] = {
    "type": "object",
    "required": ["modelName", "defaultVersion", "shares"],
    "properties": {
        "modelName": {"type": "string"},
        "defaultVersion": {"type": "string"},
        "weights": WEIGHTS,
        "shares": {**WEIGHTS, "description": "Of 1"},
        "stickyHeader": {"type": "string"},
    },
}
BODY: dict[str, Any] = {
    "oneOf": [
        WEIGHTS,
        {
            "type": "object",
            "required": ["weights"],
            "properties": {"weights": WEIGHTS, "stickyHeader": {"type": "string"}},
        },
    ]
}


def traffic(models: DividesTraffic) -> Family:
    async def show(request: Request) -> Reply:
        return json_reply(models.traffic(request.names["model_name"]))

    async def divide(request: Request) -> Reply:
        return status_reply(*await models.divide_traffic(request.names["model_name"], request.json()))

    async def end(request: Request) -> Reply:
        return status_reply(*await models.end_traffic(request.names["model_name"]))

    routes = (
        _route("GET", show, "How requests without a version are divided over versions", "showTraffic"),
        _route("PUT", divide, "Divide requests without a version over versions", "divideTraffic", BODY),
        _route("DELETE", end, "Send requests without a version to the default version", "endTraffic"),
    )
    return Family("traffic", routes, own_failure, listener="management", closes_on_error=True)


def _route(method: str, answer: Any, summary: str, operation: str, body: dict[str, Any] | None = None) -> Route:
    return Route(
        method,
        PATH,
        answer,
        key="management",
        summary=summary,
        operation=operation,
        model="",
        request_schema=body,
        example=None if body is None else EXAMPLE,
        response_schema=SHOWN if method == "GET" else STATUS_SCHEMA,
    )
