"""Helpers that the routed endpoints share: JSON replies, parameters, errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msx_frontend.errors import (
    BadRequest,
    MethodNotAllowed,
    PayloadTooLarge,
    RequestCancelled,
    ResourceNotFound,
    ServiceError,
)
from msx_frontend.net.http.wire import ClientGone, error_bytes, json_bytes, read_body

log = logging.getLogger("msx.http")

ANY = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]


class JsonReply(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_bytes(content)


def status_reply(text: str, status: int = 200) -> JsonReply:
    return JsonReply({"status": text}, status)


def described_by(description: Callable[[], dict[str, Any]]) -> list[Route]:
    """OpenAPI at `/` and at TorchServe's second name for it."""

    async def describe(request: Request) -> Response:
        return JsonReply(description())

    async def root(request: Request) -> Response:
        if request.method != "OPTIONS":
            raise MethodNotAllowed
        return await describe(request)

    return [Route("/", root, methods=ANY), Route("/api-description", describe, methods=ANY)]


def make_app(routes: list[Route]) -> Starlette:
    """A routed app whose every error has TorchServe's body."""
    handlers: Mapping[Any, Any] = {
        ServiceError: _service_error,
        HTTPException: _http_error,
        ClientGone: _client_gone,
        Exception: _bug,
    }
    every: list[BaseRoute] = [*routes]
    app = Starlette(routes=every, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


async def parameters(request: Request, limit: int) -> dict[str, Any]:
    """Query parameters, or the members of a JSON body, which win. Raises BadRequest for malformed JSON."""
    values: dict[str, Any] = dict(request.query_params)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return values
    body = await read_whole(request, limit)
    try:
        members = msgspec.json.decode(body) if body else {}
    except msgspec.DecodeError as error:
        raise BadRequest(f"The request body is not valid JSON: {error}.") from None
    if not isinstance(members, dict):
        raise BadRequest(f"The request body must be a JSON object with parameters, not {type(members).__name__}.")
    return {**values, **members}


async def read_whole(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "")
    return await read_body(request.receive, int(declared) if declared.isdecimal() else None, limit)


async def _service_error(request: Request, error: ServiceError) -> Response:
    if isinstance(error, PayloadTooLarge):
        return Response(status_code=413)
    reply = Response(error_bytes(error), error.status, media_type="application/json")
    for name, value in error.headers:
        reply.headers[name] = value
    return reply


async def _http_error(request: Request, error: HTTPException) -> Response:
    known: ServiceError = MethodNotAllowed() if error.status_code == 405 else ResourceNotFound()
    return await _service_error(request, known)


async def _client_gone(request: Request, error: ClientGone) -> Response:
    """For the access log: nobody reads it."""
    return Response(status_code=RequestCancelled.status)


async def _bug(request: Request, error: Exception) -> Response:
    log.error("a bug of the server", exc_info=error, extra={"request_id": request.scope.get("msx.request_id")})
    return await _service_error(request, ServiceError(f"Internal error: {type(error).__name__}: {error}"))
