"""vLLM's routes beside OpenAI's: scores, classes and vectors of texts, and what a client asks about the server."""

from collections.abc import Iterator
from typing import Any

from msx_core.service_errors import ServiceError
from msx_frontend.apis.vllm import reply_schemas as schemas
from msx_frontend.apis.vllm.about import ServerAbout
from msx_frontend.apis.vllm.pooling import classify, pooling
from msx_frontend.apis.vllm.request import ClassificationRequest, PoolingRequest, ScoreRequest
from msx_frontend.apis.vllm.score import score
from msx_frontend.generation.errors import as_json, openai_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Failure, Family, Route


def vllm(models: TextModels) -> Family:
    return Family("vLLM", tuple(_routes(models)), failure)


def failure(error: ServiceError) -> Failure:
    return as_json(openai_failure(error))


def _routes(models: TextModels) -> Iterator[Route]:
    api, about = models.api(openai_failure), ServerAbout(models.directory)
    for path in ("/score", "/v1/score"):
        yield Route(
            "POST",
            path,
            text_route(api, score),
            summary="How well texts fit others, pair by pair (vLLM's)",
            request_schema=ScoreRequest,
            example={"text_1": "Why is the sea salty?", "text_2": ["Rivers carry salts.", "Cats sleep."]},
            response_schema=schemas.ScoreList,
            offered_by=("rerank", "embed") if path.startswith("/v1") else (),
        )
    yield Route(
        "POST",
        "/classify",
        text_route(api, classify),
        summary="The likeliest label of texts (vLLM's)",
        request_schema=ClassificationRequest,
        example={"input": ["What a good day"]},
        response_schema=schemas.ClassifiedList,
    )
    yield Route(
        "POST",
        "/pooling",
        text_route(api, pooling),
        summary="Vectors or scores of texts, as the model has them (vLLM's)",
        request_schema=PoolingRequest,
        example={"input": ["a text", "another one"]},
        response_schema=schemas.PooledList,
    )
    yield Route(
        "GET",
        "/version",
        about.version,
        key=None,
        summary="The server's version",
        response_schema=schemas.ServerVersion,
    )
    yield Route(
        "GET",
        "/tokenizer_info",
        about.tokenizer,
        summary="The tokenizer's configuration (vLLM's)",
        response_schema=dict[str, Any],
    )
