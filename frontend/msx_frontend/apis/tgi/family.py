"""TGI's API: the routes of text-generation-inference."""

from collections.abc import Iterator
from typing import Any

from msx_core.generation import TextSpan
from msx_core.service_errors import ServiceError
from msx_frontend.apis.tgi import reply_schemas as schemas
from msx_frontend.apis.tgi.generate import generate, generate_compatible, generate_stream
from msx_frontend.apis.tgi.request import TgiRequest
from msx_frontend.apis.tgi.server import ServerInfo, chat_tokenize, tokenize
from msx_frontend.apis.tgi.vllm_tokenize import Detokenize, VllmText, detokenize
from msx_frontend.generation.chat_request import ChatRequest
from msx_frontend.generation.errors import as_json, tgi_failure
from msx_frontend.generation.simple_tokens import SimpleToken
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Failure, Family, JobRoute, Route


def tgi(models: TextModels) -> Family:
    return Family("TGI", tuple(_routes(models)), failure)


def failure(error: ServiceError) -> Failure:
    return as_json(tgi_failure(error))


def _routes(models: TextModels) -> Iterator[Route]:
    """`/` is TorchServe's, too: only POST is TGI's, and only where a model generates; else it is TEI's."""
    api, info, directory = (
        models.api(tgi_failure),
        ServerInfo(models.directory, models.limits.max_texts_per_request),
        models.directory,
    )
    yield _generating(
        "/generate", text_route(api, generate), summary="Generate a text", response_schema=schemas.Generated
    )
    yield _generating(
        "/generate_stream",
        text_route(api, generate_stream),
        summary="Generate a text, token by token",
        events_schema=schemas.StreamEvent,
    )
    yield _generating(
        "/",
        text_route(api, generate_compatible),
        summary="Either of both",
        response_schema=list[schemas.Generated],
        events_schema=schemas.StreamEvent,
        when=directory.generates,
    )
    yield Route(
        "POST",
        "/tokenize",
        text_route(api, tokenize),
        summary="The tokens of a text",
        request_schema=TgiRequest,
        example={"inputs": "Once upon a time"},
        response_schema=list[TextSpan | list[SimpleToken]],
    )
    yield Route(
        "POST",
        "/detokenize",
        text_route(api, detokenize),
        summary="The text of tokens (vLLM's)",
        request_schema=Detokenize,
        example={"tokens": [1, 2]},
        response_schema=VllmText,
    )
    yield Route(
        "POST",
        "/chat_tokenize",
        text_route(api, chat_tokenize),
        summary="The tokens of a conversation",
        request_schema=ChatRequest,
        example={"messages": [{"role": "user", "content": "Hello"}]},
        response_schema=schemas.ChatTokens,
    )
    yield Route("GET", "/info", info.info, summary="Name and limits of the model", response_schema=schemas.Info)
    yield Route("GET", "/health", info.health, key=None, summary="200 while a language model answers")


def _generating(path: str, answer: JobRoute, **more: Any) -> Route:
    example = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 16}}
    return Route("POST", path, answer, request_schema=TgiRequest, example=example, **more)
