"""Ollama's API, below /api."""

from collections.abc import Iterator

from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.apis.ollama import reply_schemas as schemas
from msx_frontend.apis.ollama.embed import embed, embeddings
from msx_frontend.apis.ollama.listing import OllamaModels, show
from msx_frontend.apis.ollama.request import OllamaChat, OllamaEmbed, OllamaEmbedding, OllamaGenerate, ShowModel
from msx_frontend.apis.ollama.texts import chat, generate
from msx_frontend.generation.errors import as_json, ollama_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Failure, Family, Reply, Route
from msx_net.http.request import Request

UNSERVED = (
    ("POST", "/api/pull"),
    ("POST", "/api/push"),
    ("POST", "/api/create"),
    ("POST", "/api/copy"),
    ("DELETE", "/api/delete"),
    ("POST", "/api/blobs/{digest}"),
)


def ollama(models: TextModels) -> Family:
    return Family("Ollama", tuple(_routes(models)), failure, owns=("api",))


def failure(error: ServiceError) -> Failure:
    return as_json(ollama_failure(error))


async def unserved(request: Request) -> Reply:
    """Raises BadRequest."""
    raise BadRequest(
        f"{request.call.path} is not served: this server's models are registered by its operator, with "
        "POST /models?url=hf://org/name of the management API, or at the start"
    )


def _routes(models: TextModels) -> Iterator[Route]:
    api, listed = models.api(ollama_failure), OllamaModels(models.directory)
    said = [{"role": "user", "content": "What is the capital of Norway?"}]
    yield Route(
        "POST",
        "/api/chat",
        text_route(api, chat),
        summary="The next message of a conversation (Ollama's)",
        request_schema=OllamaChat,
        example={"model": "llm", "messages": said, "stream": False},
        response_schema=schemas.ChatLine,
        in_lines=True,
    )
    yield Route(
        "POST",
        "/api/generate",
        text_route(api, generate),
        summary="A text for a prompt (Ollama's)",
        request_schema=OllamaGenerate,
        example={"model": "llm", "prompt": "Once upon a time", "stream": False},
        response_schema=schemas.GenerateLine,
        in_lines=True,
    )
    yield Route(
        "POST",
        "/api/embed",
        text_route(api, embed),
        summary="Vectors of texts (Ollama's)",
        request_schema=OllamaEmbed,
        example={"model": "llm", "input": ["a text", "another one"]},
        response_schema=schemas.Embedded,
    )
    yield Route(
        "POST",
        "/api/embeddings",
        text_route(api, embeddings),
        summary="The vector of a text (Ollama's older route)",
        request_schema=OllamaEmbedding,
        example={"model": "llm", "prompt": "a text"},
        response_schema=schemas.EmbeddedOne,
    )
    yield Route(
        "GET", "/api/tags", listed.tags, summary="Language models (Ollama's list)", response_schema=schemas.Tags
    )
    yield Route(
        "GET", "/api/ps", listed.running, summary="Those that answer (Ollama's list)", response_schema=schemas.Tags
    )
    yield Route(
        "GET",
        "/api/version",
        listed.version,
        key=None,
        summary="The version of Ollama whose API this is",
        response_schema=schemas.Version,
    )
    yield Route(
        "POST",
        "/api/show",
        text_route(api, show),
        summary="What a language model can do (Ollama's)",
        request_schema=ShowModel,
        example={"model": "llm"},
        response_schema=schemas.Shown,
    )
    for method, path in UNSERVED:
        yield Route(method, path, unserved)
