"""TorchServe's management API over the calls of `ModelApi`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from msx_frontend.apis.torchserve import management_schemas as schemas
from msx_frontend.apis.torchserve.description import managed_model_description
from msx_frontend.keys.tokens import Tokens
from msx_frontend.models.describe import kserve_ready
from msx_frontend.models.model_api import ModelApi
from msx_frontend.models.parameters import text
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, JsonSchema, Reply, Route
from msx_net.http.parameters import parameters
from msx_net.http.replies import STATUS_SCHEMA, json_reply, status_reply
from msx_net.http.request import Request

MODEL, VERSION = "model_name", "model_version"
"""Names in paths, as TorchServe's description has them."""

REGISTER = (
    ("url", "string"),
    ("model_name", "string"),
    ("handler", "string"),
    ("engine", "string"),
    ("runtime", "string"),
    ("batch_size", "integer"),
    ("max_batch_delay", "integer"),
    ("initial_workers", "integer"),
    ("response_timeout", "integer"),
    ("startup_timeout", "integer"),
    ("synchronous", "boolean"),
    ("s3_sse_kms", "boolean"),
    ("replace", "boolean"),
    ("autoscaling", "boolean"),
)
PAGE = (("limit", "integer"), ("next_page_token", "string"))
DESCRIBE = (("customized", "boolean"),)
SCALE = (
    ("min_worker", "integer"),
    ("max_worker", "integer"),
    ("synchronous", "boolean"),
    ("autoscaling", "boolean"),
)


BODIES: dict[str, Any] = {
    "registerModel": {"url": "resnet.mar", "initial_workers": 1, "synchronous": True},
    "scaleWorker": {"min_worker": 2, "synchronous": True},
    "version_scaleWorker": {"min_worker": 2, "synchronous": True},
}
"""Examples, by operation: parameters may be members of a JSON object."""
LATER = frozenset({"registerModel", "scaleWorker", "version_scaleWorker"})
"""Operations that need not be over when they are answered."""
STATUSES = (
    (200, "The reply"),
    (202, "It is taken; workers start or end meanwhile, which the model's description shows"),
)
REPLIES: dict[str, JsonSchema] = {
    "listModels": schemas.MODELS,
    "describeModel": schemas.DESCRIBED,
    "version_describeModel": schemas.DESCRIBED,
    "kserveReady": schemas.READY,
}


def management(models: ModelApi, tokens: Tokens | None) -> Family:
    """`tokens` is None when authorization is off: then no keys are made."""
    api = ManagementRoutes(models)
    routes = tuple(api.routes())
    if tokens is not None:
        routes += (_token(tokens),)
    return Family(
        "TorchServe management",
        routes,
        torchserve_failure,
        listener="management",
        closes_on_error=True,
        takes_as_sent=True,
    )


class ManagementRoutes:
    def __init__(self, models: ModelApi) -> None:
        self._models = models

    def routes(self) -> Iterator[Route]:
        yield _route("GET", "/models", self.list, "List models", "listModels", PAGE)
        yield _route("POST", "/models", self.register, "Register a model", "registerModel", REGISTER)
        yield from self._of_model("/models/{model_name}", "", "the default version")
        yield from self._of_model("/models/{model_name}/{model_version}", "version_", "one version")
        path = "/models/{model_name}/{model_version}/set-default"
        yield _route("PUT", path, self.set_default, "Set the default version", "setDefault")
        path = "/v1/models/{model_name}"
        yield _route("GET", path, self.kserve_ready, "KServe v1: has the model a worker that answers?", "kserveReady")

    def _of_model(self, path: str, prefix: str, which: str) -> Iterator[Route]:
        yield _route("GET", path, self.describe, f"Describe {which}", f"{prefix}describeModel", DESCRIBE)
        yield _route("PUT", path, self.scale, f"Scale {which}", f"{prefix}scaleWorker", SCALE)
        yield _route("DELETE", path, self.unregister, f"Unregister {which}", f"{prefix}unregisterModel")
        yield _route("OPTIONS", path, self.manage, f"OpenAPI 3.0 of what can be managed of {which}", "")

    async def list(self, request: Request) -> Reply:
        return json_reply(self._models.models(request.query))

    async def register(self, request: Request) -> Reply:
        return status_reply(*await self._models.register(parameters(request)))

    async def describe(self, request: Request) -> Reply:
        name, number = _named(request)
        return json_reply(await self._models.describe(name, number, request.query, request.call.id))

    async def scale(self, request: Request) -> Reply:
        (name, number), values = _named(request), parameters(request)
        return status_reply(*await self._models.scale(name, number or text(values, "model_version"), values))

    async def unregister(self, request: Request) -> Reply:
        return status_reply(*await self._models.unregister(*_named(request)))

    async def manage(self, request: Request) -> Reply:
        """OpenAPI: what can be managed of one model."""
        name, number = _named(request)
        self._models.find(name, number)
        return json_reply(managed_model_description(name, self.routes()))

    async def set_default(self, request: Request) -> Reply:
        names = request.names
        return status_reply(*await self._models.set_default(names[MODEL], names[VERSION]))

    async def kserve_ready(self, request: Request) -> Reply:
        name = request.names[MODEL]
        return json_reply(kserve_ready(self._models.find(name, None), name))


def _named(request: Request) -> tuple[str, str | None]:
    return request.names[MODEL], request.names.get(VERSION)


def _route(
    method: str,
    path: str,
    answer: Callable[[Request], Awaitable[Reply]],
    summary: str,
    operation: str,
    queries: tuple[tuple[str, str], ...] = (),
) -> Route:
    return Route(
        method,
        path,
        answer,
        key="management",
        summary=summary,
        operation=operation,
        queries=queries,
        model="",
        example=BODIES.get(operation),
        response_schema=REPLIES.get(operation) or (None if method == "OPTIONS" else STATUS_SCHEMA),
        statuses=STATUSES if operation in LATER else STATUSES[:1],
    )


def _token(tokens: Tokens) -> Route:
    async def token(request: Request) -> Reply:
        """A new key of the kind `type`, for a client that has the API key."""
        call = request.call
        call.key = await asyncio.to_thread(tokens.regenerate, request.query.get("type"), call.authorization)
        return Reply(b"")

    return Route(
        "GET",
        "/token",
        token,
        key=None,  # it is checked there
        any_method=True,
        summary="A new key of a kind, for a client that has the API key",
        operation="token",
        queries=(("type", "string"),),
    )
