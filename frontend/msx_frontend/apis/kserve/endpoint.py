"""The REST routes of the Open Inference Protocol: bare ASGI, with tokens and errors of its own."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msx_frontend.apis.kserve.answers import Answers
from msx_frontend.apis.kserve.exchange import Reply, Request, read, send_failure, send_reply
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.apis.kserve.routes import Found, Route, find, refusal
from msx_frontend.errors import MethodNotAllowed, RequestCancelled, ResourceNotFound, ServiceError
from msx_frontend.generation.errors import Bug
from msx_frontend.keys.key import Key, Kind
from msx_frontend.models.health import Health
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.wire import ClientGone, Receive, Send, reply_headers, send_whole

log = logging.getLogger("msx.http")


class ChecksTokens(Protocol):
    def check(self, kind: Kind, authorization: str | None) -> Key:
        """Raises InvalidKey."""


class OpenInference:
    """`tokens` is None when authorization is off."""

    def __init__(
        self,
        registry: Registry,
        health: Health,
        repository: Repository,
        max_request_size: int,
        tokens: ChecksTokens | None,
    ) -> None:
        self._answers = Answers(registry, health, repository)
        self._limit, self._tokens = max_request_size, tokens

    @staticmethod
    def serves(path: str) -> bool:
        return path == "/v2" or path.startswith("/v2/")

    async def __call__(self, call: Call, receive: Receive, send: Send) -> int:
        """Answer; returns the status for the access log."""
        try:
            found = _found(call)
            if call.method == "OPTIONS":
                return await _preflight(found.route, call, send)
            if self._tokens is not None and found.route.key is not None:
                call.use(self._tokens.check(found.route.key, call.authorization))
                if found.model:
                    call.check_model(found.model)
            body = await read(call, receive, self._limit)
        except ServiceError as error:
            return await send_failure(send, call, error, body_read=False)
        except ClientGone:
            return RequestCancelled.status
        try:
            reply = await self._answer(found, Request(call, receive, found.model, found.version, body))
            return await send_reply(send, call, reply)
        except ServiceError as error:
            return await send_failure(send, call, error)

    async def _answer(self, found: Found, request: Request) -> Reply:
        answer: Callable[[Request], Awaitable[Reply]] = getattr(self._answers, found.route.answer)
        try:
            return await answer(request)
        except ServiceError:
            raise
        except Exception as error:  # a bug must look like no client's mistake, and have the protocol's shape
            log.exception("a bug of the server", extra={"request_id": request.call.id})
            raise Bug(error) from error


def _found(call: Call) -> Found:
    found = find(call.path)
    if found is None:
        raise refusal(call.path) or ResourceNotFound
    method = "GET" if call.method == "HEAD" else call.method
    if method not in (found.route.method, "OPTIONS"):
        raise MethodNotAllowed
    return found


async def _preflight(route: Route, call: Call, send: Send) -> int:
    """Browsers ask before they send a token; what they may do is in the configured CORS headers of every reply."""
    await send_whole(send, 204, reply_headers(call.id, [("allow", f"{route.method}, OPTIONS")]), b"")
    return 204
