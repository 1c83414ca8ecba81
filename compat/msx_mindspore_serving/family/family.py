"""The REST routes of MindSpore Serving."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from msx_core.service_errors import (
    Bug,
    InvalidKey,
    MethodNotAllowed,
    ModelNotAllowed,
    PayloadTooLarge,
    PriorityNotAllowed,
    ResourceNotFound,
    ServiceError,
    SlowRequest,
    TooManyRequests,
)
from msx_mindspore_serving.family.errors import Spec, error_text
from msx_mindspore_serving.family.json_outputs import json_error
from msx_mindspore_serving.family.rest_call import ONLY_POST, serving_route
from msx_mindspore_serving.family.servables import Servables
from msx_net.http.family import JSON, Failure, Family, Route

NAME = "MindSpore Serving"

PATHS = {
    "/model/{model}:{method}": "Call a method of a servable's newest version",
    "/model/{model}/version/{version}:{method}": "Call a method of one version of a servable",
    "/version/{version}/model/{model}:{method}": "The same, in the other order",
}

_VALUE: dict[str, Any] = {"type": "object", "additionalProperties": True}
REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["instances"],
    "properties": {"instances": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]}},
}
EXAMPLE = {"instances": [{"x1": [[1.0, 2.0]], "x2": [[3.0, 4.0]]}]}
RESPONSE: dict[str, Any] = {
    "type": "object",
    "properties": {"instances": {"type": "array", "items": _VALUE}, "error_msg": {"type": "string"}},
}

_WITH_STATUS = (ModelNotAllowed, PriorityNotAllowed, TooManyRequests, SlowRequest, Bug)
"""Errors that MindSpore Serving does not know keep their status; so does a missing key, which is 401."""


def mindspore_serving(servables: Servables, max_request_size: int) -> Family:
    """`max_request_size`: bytes of a request, for the text about larger ones."""
    return Family(NAME, tuple(_routes(servables)), partial(serving_failure, max_request_size))


def mindspore_serving_alone(servables: Servables, max_request_size: int) -> Family:
    """Family of a listener that a start script opens: each request of it is MindSpore Serving's, and no key is asked
    for."""
    route = serving_route(servables)
    paths = ("/", "/{rest:path}")
    routes = tuple(Route("POST", path, route, key=None, any_method=True, model="") for path in paths)
    return Family(NAME, routes, partial(serving_failure, max_request_size))


def serving_failure(max_request_size: int, error: ServiceError) -> Failure:
    if isinstance(error, InvalidKey):
        return Failure(401, json_error(error.message), (*JSON, *error.headers))
    if isinstance(error, _WITH_STATUS):
        return Failure(error.status, json_error(error.message), (*JSON, *error.headers))
    if isinstance(error, MethodNotAllowed | ResourceNotFound):
        return Failure(200, json_error(ONLY_POST))
    if isinstance(error, PayloadTooLarge):
        return Failure(200, json_error(f"http message is bigger than {max_request_size}"))
    return Failure(200, json_error(error_text(error, Spec("", "")).text), (*JSON, *error.headers))


def _routes(servables: Servables) -> Iterator[Route]:
    route = serving_route(servables)
    for path, summary in PATHS.items():
        yield Route(
            "POST",
            path,
            route,
            any_method=True,
            summary=summary,
            request_schema=REQUEST,
            example=EXAMPLE,
            response_schema=RESPONSE,
        )
