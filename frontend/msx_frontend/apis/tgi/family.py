"""TGI's API: the routes of text-generation-inference."""

from __future__ import annotations

from collections.abc import Iterator

from msx_frontend.apis.tgi.generate import generate, generate_compatible, generate_stream
from msx_frontend.apis.tgi.request import TgiRequest
from msx_frontend.apis.tgi.server import ServerInfo, chat_tokenize, tokenize
from msx_frontend.errors import ServiceError
from msx_frontend.generation.chat_request import ChatRequest
from msx_frontend.generation.errors import as_json, tgi_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_frontend.net.http.family import Failure, Family, Route


def tgi(models: TextModels) -> Family:
    return Family("TGI", tuple(_routes(models)), failure)


def failure(error: ServiceError) -> Failure:
    return as_json(tgi_failure(error))


def _routes(models: TextModels) -> Iterator[Route]:
    """`/` is TorchServe's, too: only POST is TGI's, and only where a model generates."""
    api, info, directory = models.api(tgi_failure), ServerInfo(models.directory), models.directory
    root = text_route(api, generate_compatible)
    yield Route("POST", "/generate", text_route(api, generate), summary="Generate a text", request_schema=TgiRequest)
    yield Route(
        "POST",
        "/generate_stream",
        text_route(api, generate_stream),
        summary="Generate a text, token by token",
        request_schema=TgiRequest,
    )
    yield Route(
        "POST",
        "/",
        root,
        summary="Either of both",
        request_schema=TgiRequest,
        when=lambda: bool(directory.language_models()),
    )
    yield Route(
        "POST", "/tokenize", text_route(api, tokenize), summary="The tokens of a text", request_schema=TgiRequest
    )
    yield Route(
        "POST",
        "/chat_tokenize",
        text_route(api, chat_tokenize),
        summary="The tokens of a conversation",
        request_schema=ChatRequest,
    )
    yield Route("GET", "/info", info.info, summary="Name and limits of the model")
    yield Route("GET", "/health", info.health, key=None, summary="200 while a language model answers")
