"""The routes of language models: bare ASGI beside the predictions, with the tokens and errors of each family."""

from __future__ import annotations

import re
from collections.abc import Callable

from msx_frontend.apis.kserve.generate import kserve_generate, kserve_generate_stream
from msx_frontend.apis.openai.chat import chat_completions
from msx_frontend.apis.openai.completions import completions
from msx_frontend.apis.openai.embeddings import embeddings
from msx_frontend.apis.openai.models import list_models, show_model
from msx_frontend.apis.openai.responses import responses
from msx_frontend.apis.tgi.generate import generate, generate_compatible, generate_stream
from msx_frontend.apis.tgi.server import chat_tokenize, health, info, tokenize
from msx_frontend.errors import MethodNotAllowed, ResourceNotFound, ServiceError
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.errors import kserve_failure, openai_failure, tgi_failure
from msx_frontend.generation.exchange import Exchange, Request, Route
from msx_frontend.generation.replies import Reply
from msx_frontend.keys.key import Key
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.wire import Receive, Send, reply_headers, send_whole

ROOT = "/"
V1 = "/v1/"
NAMED = re.compile(r"/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?/generate(?P<stream>_stream)?")
MODEL = re.compile(r"/v1/models/(?P<model>.+)")

OPENAI: dict[str, dict[str, Route]] = {
    "/v1/models": {"GET": Route(list_models, openai_failure)},
    "/v1/completions": {"POST": Route(completions, openai_failure)},
    "/v1/chat/completions": {"POST": Route(chat_completions, openai_failure)},
    "/v1/embeddings": {"POST": Route(embeddings, openai_failure)},
    "/v1/responses": {"POST": Route(responses, openai_failure)},
}
TGI: dict[str, dict[str, Route]] = {
    ROOT: {"POST": Route(generate_compatible, tgi_failure)},
    "/generate": {"POST": Route(generate, tgi_failure)},
    "/generate_stream": {"POST": Route(generate_stream, tgi_failure)},
    "/tokenize": {"POST": Route(tokenize, tgi_failure)},
    "/chat_tokenize": {"POST": Route(chat_tokenize, tgi_failure)},
    "/info": {"GET": Route(info, tgi_failure)},
    "/health": {"GET": Route(health, tgi_failure, open=True)},
}
EXACT = {**OPENAI, **TGI}
SHOW_MODEL = {"GET": Route(show_model, openai_failure)}
KSERVE = {"POST": Route(kserve_generate, kserve_failure)}
KSERVE_STREAM = {"POST": Route(kserve_generate_stream, kserve_failure)}


async def _nowhere(request: Request) -> Reply:
    raise ResourceNotFound


NOWHERE = Route(_nowhere, openai_failure)


class LanguageModels:
    """`check_token` is given the Authorization header, returns the key in it, or raises InvalidKey."""

    def __init__(
        self,
        registry: Registry,
        max_request_size: int,
        check_token: Callable[[str | None], Key] | None = None,
        default_llm: str = "",
    ) -> None:
        self._registry, self._limit, self._check_token = registry, max_request_size, check_token
        self._directory = Directory(registry, default_llm)

    def serves(self, method: str, path: str) -> bool:
        """`/` is TorchServe's, too: only POST is TGI's, and only where a model generates."""
        if path == ROOT:
            return method == "POST" and bool(self._directory.language_models())
        return path in EXACT or path.startswith(V1) or NAMED.fullmatch(path) is not None

    async def __call__(self, call: Call, receive: Receive, send: Send) -> int:
        """Answer; returns the status for the access log."""
        routes, path = _find(call.path)
        route = routes.get(call.method)
        if call.method == "OPTIONS" and routes:
            return await _preflight(routes, call, send)
        if route is None:
            any_of_them = next(iter(routes.values()), NOWHERE)
            return await self._refuse(any_of_them, call, send, MethodNotAllowed() if routes else ResourceNotFound())
        if self._check_token is not None and not route.open:
            try:
                call.use(self._check_token(call.authorization))
            except ServiceError as error:
                return await self._refuse(route, call, send, error)
        return await self._exchange(route, call, send).answer(receive, self._limit, path)

    async def _refuse(self, route: Route, call: Call, send: Send, error: ServiceError) -> int:
        return await self._exchange(route, call, send).fail(error)

    def _exchange(self, route: Route, call: Call, send: Send) -> Exchange:
        return Exchange(self._registry, self._directory.seen_by(call.key), route, call, send)


async def _preflight(routes: dict[str, Route], call: Call, send: Send) -> int:
    """Browsers ask before they send a token; what they may do is in the configured CORS headers of every reply."""
    allowed = ", ".join((*routes, "OPTIONS"))
    await send_whole(send, 204, reply_headers(call.id, [("allow", allowed)]), b"")
    return 204


def _find(path: str) -> tuple[dict[str, Route], dict[str, str]]:
    """The routes of a path by their methods, and the names in it."""
    if path in EXACT:
        return EXACT[path], {}
    if named := MODEL.fullmatch(path):
        return SHOW_MODEL, named.groupdict()
    if named := NAMED.fullmatch(path):
        names = {name: value for name, value in named.groupdict().items() if value is not None}
        return (KSERVE_STREAM if "stream" in names else KSERVE), names
    return {}, {}
