"""The REST routes of the Open Inference Protocol, with Triton's extensions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msx_core.service_errors import ServiceError
from msx_frontend.apis.kserve import schemas
from msx_frontend.apis.kserve.answers import Answers
from msx_frontend.apis.kserve.errors import failure
from msx_frontend.apis.kserve.generate import EXAMPLE as GENERATE_EXAMPLE
from msx_frontend.apis.kserve.generate import KserveRequest, KserveText, generate, generate_stream
from msx_frontend.apis.kserve.inference import Submit, infer_route
from msx_frontend.apis.kserve.repository import Unsupported
from msx_frontend.generation.errors import as_json, kserve_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Answer, Failure, Family, JobRoute, Reply, Route
from msx_net.http.request import Request

MODEL = ("/v2/models/{model}", "/v2/models/{model}/versions/{version}")

NOT_SERVED = {
    ("/v2/systemsharedmemory", "/v2/cudasharedmemory"): "Shared memory is not served here: send and take tensors "
    "as bytes of the request (binary_data).",
    ("/v2/trace/setting", "/v2/models/{model}/trace/setting"): "Traces are not served here: /v2/models/stats and the "
    "metrics tell where the time goes.",
    ("/v2/logging",): "Log settings are the server's own here: start it with --log-config.",
}
"""Triton's extensions that its clients ask for, and what to do instead."""


def kserve_v2(answers: Answers, submit: Submit, max_response_size: int) -> Family:
    infer, explain = (infer_route(submit, max_response_size, explain=explain) for explain in (False, True))
    routes = (*_of_server(answers), *_of_models(answers, infer, explain), *_of_repository(answers), *_not_served())
    return Family("KServe v2", routes, v2_failure, owns=("v2",), compress_replies=True)


def kserve_generate(models: TextModels) -> Family:
    """Triton's generate extension, whose errors are those of the other text APIs."""
    return Family("KServe generate", tuple(_of_language_models(models)), generation_failure)


def generation_failure(error: ServiceError) -> Failure:
    return as_json(kserve_failure(error))


def v2_failure(error: ServiceError) -> Failure:
    return as_json(failure(error))


def _of_server(answers: Answers) -> Iterator[Route]:
    yield Route(
        "GET",
        "/v2",
        answers.server,
        summary="Name, version and extensions of the server",
        response_schema=schemas.SERVER,
    )
    yield Route(
        "GET", "/v2/health/live", answers.live, key=None, summary="The process answers", response_schema=schemas.LIVE
    )
    yield Route(
        "GET",
        "/v2/health/ready",
        answers.ready,
        key=None,
        summary="Requests should be sent here",
        response_schema=schemas.READY,
    )
    yield Route("GET", "/v2/models", answers.models, summary="Names of the models", response_schema=schemas.MODELS)
    yield Route(
        "GET",
        "/v2/models/stats",
        answers.all_statistics,
        summary="Triton's statistics of all models",
        response_schema=schemas.STATISTICS,
    )


def _of_models(answers: Answers, infer: JobRoute, explain: JobRoute) -> Iterator[Route]:
    tensors: dict[str, Any] = {
        "request_schema": schemas.INFER_REQUEST,
        "example": schemas.INFER_EXAMPLE,
        "response_schema": schemas.INFER_REPLY,
    }
    for path in MODEL:
        yield Route("GET", path, answers.model, summary="Inputs and outputs of a model", response_schema=schemas.MODEL)
        yield Route(
            "GET",
            f"{path}/ready",
            answers.model_ready,
            summary="Whether a model has a worker that answers",
            response_schema=schemas.MODEL_READY,
        )
        yield Route("POST", f"{path}/infer", infer, summary="Predict", **tensors)
        yield Route("POST", f"{path}/explain", explain, summary="Explain", **tensors)
        yield Route(
            "GET",
            f"{path}/config",
            answers.config,
            summary="Triton's configuration of a model",
            response_schema=schemas.CONFIG,
        )
        yield Route(
            "GET",
            f"{path}/stats",
            answers.statistics,
            summary="Triton's statistics of a model",
            response_schema=schemas.STATISTICS,
        )


def _of_language_models(models: TextModels) -> Iterator[Route]:
    api = models.api(kserve_failure)
    for path in MODEL:
        whole, stream = text_route(api, generate), text_route(api, generate_stream)
        yield Route(
            "POST",
            f"{path}/generate",
            whole,
            summary="Generate a text",
            request_schema=KserveRequest,
            example=GENERATE_EXAMPLE,
            response_schema=KserveText,
            events_schema=KserveText,
        )
        yield Route(
            "POST",
            f"{path}/generate_stream",
            stream,
            summary="Generate a text, token by token",
            request_schema=KserveRequest,
            example=GENERATE_EXAMPLE,
            events_schema=KserveText,
        )


def _of_repository(answers: Answers) -> Iterator[Route]:
    path = "/v2/repository/models/{model}"
    yield Route(
        "POST",
        "/v2/repository/index",
        answers.index,
        summary="Models that are registered or can be loaded",
        request_schema=schemas.INDEX_REQUEST,
        example={"ready": True},
        response_schema=schemas.INDEX,
    )
    yield Route(
        "POST", f"{path}/load", answers.load, key="management", summary="Load a model", response_schema=schemas.LOAD
    )
    yield Route(
        "POST",
        f"{path}/unload",
        answers.unload,
        key="management",
        summary="Unload a model",
        response_schema=schemas.UNLOAD,
    )


def _not_served() -> Iterator[Route]:
    for paths, remedy in NOT_SERVED.items():
        for path in paths:
            answer = _refusal(remedy)
            yield Route("GET", path, answer, key=None, any_method=True)
            if path.endswith("memory"):
                yield Route("GET", f"{path}/{{rest:path}}", answer, key=None, any_method=True)


def _refusal(remedy: str) -> Answer:
    async def refuse(request: Request) -> Reply:
        raise Unsupported(remedy)

    return refuse
