"""OpenAI's routes of one model, below TorchServe's path of predictions, as its vLLM handler has them.

A model that does not generate gets requests to these paths as predictions: its handler reads the rest of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msx_frontend.apis.openai import reply_schemas as schemas
from msx_frontend.apis.openai.models import list_of
from msx_frontend.apis.openai.text_routes import text_routes
from msx_frontend.generation.errors import as_json, openai_failure
from msx_frontend.generation.one_model import OneModel
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_request import TextApi
from msx_frontend.generation.text_route import Answer, TextTemplate
from msx_net.http.family import Family, JobRoute, JobTemplate, Names, Reply, Route
from msx_net.http.head import Head
from msx_net.http.request import Request

MODEL, VERSION = "model_name", "model_version"
PATHS = (f"/predictions/{{{MODEL}}}/{{{VERSION}}}/v1", f"/predictions/{{{MODEL}}}//v1")
"""The second one means the default version."""
STREAM_HEADERS = [(b"ts_stream_next", b"true")]
"""TorchServe's header of streams."""


def openai_of_models(models: TextModels) -> Family:
    routes = tuple(route for path in PATHS for route in _routes(models, path))
    return Family(
        "OpenAI below TorchServe's paths",
        routes,
        lambda error: as_json(openai_failure(error)),
        stream_headers=STREAM_HEADERS,
    )


def _routes(models: TextModels, path: str) -> Iterator[Route]:
    """Any method means the same, as with all of TorchServe's predictions."""
    described = VERSION in path

    def of_path(names: Names) -> OneModel:
        return models.one(names[MODEL], names.get(VERSION))

    def generates(names: Names) -> bool:
        return of_path(names).generates()

    async def listed(request: Request) -> Reply:
        return list_of(of_path(request.names).only())

    api = models.api(openai_failure)
    for route in text_routes(path, partial(_text_route, api, of_path)):
        summary = f"{route.summary}, by one version" if described else ""
        yield route._replace(summary=summary, any_method=True, model=MODEL, whose=generates, offered_by=())
    yield Route(
        "GET",
        f"{path}/models",
        listed,
        summary="The names by which requests to one version may ask for it" if described else "",
        response_schema=schemas.NamesOfModel,
        any_method=True,
        model=MODEL,
        whose=generates,
    )


def _text_route(api: TextApi, of_path: Callable[[Names], OneModel], answer: Answer) -> JobRoute:
    def template(head: Head, names: Names) -> JobTemplate:
        return TextTemplate(api._replace(directory=of_path(names)), answer, head, names)

    return JobRoute(template)
