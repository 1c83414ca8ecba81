"""OpenAI's API, below /v1, and below /openai/v1, where KServe's clients look for it."""

from collections.abc import Iterator
from functools import partial

from msx_core.service_errors import ServiceError
from msx_frontend.apis.openai import reply_schemas as schemas
from msx_frontend.apis.openai import response_schemas
from msx_frontend.apis.openai.background import BackgroundResponses
from msx_frontend.apis.openai.batches import batch_routes
from msx_frontend.apis.openai.embeddings import EmbeddingRequest, embeddings
from msx_frontend.apis.openai.files import file_routes
from msx_frontend.apis.openai.kept_responses import KeptResponses
from msx_frontend.apis.openai.kept_routes import KeptRoutes
from msx_frontend.apis.openai.models import ModelList
from msx_frontend.apis.openai.pages import QUERIES
from msx_frontend.apis.openai.responses import Responses
from msx_frontend.apis.openai.responses_request import ResponsesRequest
from msx_frontend.apis.openai.text_routes import text_routes
from msx_frontend.batches.runner import Batches
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.generation.client_forms import expected_form
from msx_frontend.generation.errors import as_json, openai_failure
from msx_frontend.generation.ranking import Ranking, RerankRequest, rerank
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Failure, Family, Route


def openai(
    models: TextModels,
    kept: KeptResponses | None = None,
    jobs: DeferredJobs | None = None,
    batches: Batches | None = None,
) -> Family:
    """`kept` is None where the server keeps no responses, `jobs` and `batches` where it defers no requests."""
    background = None if jobs is None else BackgroundResponses(jobs)
    responses, routes_of_kept = Responses(kept, background), KeptRoutes(kept, background)
    of_files = file_routes(None if batches is None else batches.shelf)
    routes = (*_routes(models, responses), *_kept_routes(routes_of_kept), *of_files, *batch_routes(batches))
    return Family(
        "OpenAI",
        (*routes, *(_of_kserve(one) for one in routes if one.path.startswith("/v1"))),
        failure,
        owns=("v1", "openai"),
        lends=("v1",),
    )


def failure(error: ServiceError) -> Failure:
    return as_json(openai_failure(error))


def _of_kserve(route: Route) -> Route:
    """The same route where KServe's clients call it: a path more in the router's tree, the same answer."""
    summary = route.summary and f"For KServe's clients the same as {route.path}"
    return route._replace(path=f"/openai{route.path}", summary=summary, offered_by=())


def _routes(models: TextModels, responses: Responses) -> Iterator[Route]:
    api, listed = models.api(openai_failure), ModelList(models.directory)
    yield from text_routes("/v1", partial(text_route, api))
    yield Route(
        "POST",
        "/v1/responses",
        text_route(api, responses.answer),
        summary="The next turn of a conversation",
        request_schema=ResponsesRequest,
        example={"input": "What is the capital of Norway?", "max_output_tokens": 64},
        response_schema=response_schemas.Response,
        events_schema=response_schemas.ResponseEvent,
        offered_by=("generate",),
    )
    yield Route(
        "POST",
        "/v1/embeddings",
        text_route(api, embeddings),
        summary="Vectors of texts",
        request_schema=EmbeddingRequest,
        example={"input": ["a text", "another one"]},
        response_schema=schemas.EmbeddingList,
        offered_by=("embed",),
    )
    for path, whose in (("/v1/rerank", "Cohere's and Jina's shape"), ("/v2/rerank", "Cohere's second version")):
        yield Route(
            "POST",
            path,
            text_route(api, rerank),
            summary=f"Documents by how well they fit a query ({whose})",
            request_schema=RerankRequest,
            example={"query": "Why is the sea salty?", "documents": ["Rivers carry salts.", "Cats sleep."]},
            response_schema=Ranking,
            offered_by=("rerank",) if path.startswith("/v1") else (),
        )
    yield Route(
        "GET",
        "/v1/models",
        listed.list,
        summary="Language models, and the names of all models",
        response_schema=schemas.ListedModels,
        form=expected_form,
    )
    # Clients ask for names with slashes.
    yield Route("GET", "/v1/models/{model:path}", listed.show, form=expected_form)
    yield Route(
        "GET",
        "/v1/models/{model}",
        listed.show,
        summary="One model; KServe v1: whether it is ready",
        response_schema=schemas.ListedModel,
        form=expected_form,
    )


def _kept_routes(routes: KeptRoutes) -> Iterator[Route]:
    yield Route(
        "GET",
        "/v1/responses/{id}",
        routes.show,
        summary="A response that is kept, or runs in the background",
        response_schema=response_schemas.Response,
    )
    yield Route(
        "POST",
        "/v1/responses/{id}/cancel",
        routes.cancel,
        summary="Cancel a response in the background",
        response_schema=response_schemas.Response,
    )
    yield Route(
        "DELETE",
        "/v1/responses/{id}",
        routes.delete,
        summary="Keep a response no longer",
        response_schema=response_schemas.DeletedResponse,
    )
    yield Route(
        "GET",
        "/v1/responses/{id}/input_items",
        routes.items,
        summary="What a response that is kept answers",
        queries=QUERIES,
        response_schema=response_schemas.InputItems,
    )
