"""The API of llm-serving, MindSpore's server of language models (github.com/mindspore-ai/llm-serving)."""

from collections.abc import Iterator
from typing import Any

from msx_core.service_errors import ServiceError
from msx_frontend.apis.llm_serving import reply_schemas as schemas
from msx_frontend.apis.llm_serving.generate import generate, generate_either, generate_stream, generated_stream
from msx_frontend.apis.llm_serving.request import ServingInstances, ServingRequest
from msx_frontend.apis.llm_serving.serving import answer_with, model_info, running, waiting
from msx_frontend.generation.errors import as_json, tgi_failure
from msx_frontend.generation.text_models import TextModels
from msx_frontend.generation.text_route import text_route
from msx_net.http.family import Failure, Family, Route

EXAMPLE = {"inputs": "Once upon a time", "parameters": {"max_new_tokens": 16, "do_sample": False}}


def llm_serving(models: TextModels) -> Family:
    """Errors have TGI's form, whose `error` its client reads. Below `/models/` all is TorchServe's where no model
    generates; `:generated_stream` of a model that does not is a servable's method."""
    return Family("llm-serving", tuple(_routes(models)), failure)


def failure(error: ServiceError) -> Failure:
    return as_json(tgi_failure(error))


def _routes(models: TextModels) -> Iterator[Route]:
    api, path = models.api(tgi_failure), "/models/{model}"
    whole: dict[str, Any] = {"response_schema": schemas.WholeText}
    events: dict[str, Any] = {"events_schema": schemas.StreamedLine}
    for end, write, summary, shapes in (
        ("", generate_either, "Generate a text, as `stream` says", {**whole, **events}),
        ("/generate", generate, "Generate a text", whole),
        ("/generate_stream", generate_stream, "Generate a text, token by token", events),
    ):
        yield Route(
            "POST",
            f"{path}{end}",
            text_route(api, write),
            summary=summary,
            request_schema=ServingRequest,
            example=EXAMPLE,
            when=models.directory.may_generate,
            **shapes,
        )
    yield Route(
        "POST",
        "/model/{model}:generated_stream",
        text_route(api, generated_stream),
        summary="Generate a text, token by token, with MindSpore Serving's body",
        request_schema=ServingInstances,
        example={"instances": EXAMPLE["inputs"], "parameters": EXAMPLE["parameters"]},
        whose=lambda names: models.one(names["model"], None).generates(),
        **events,
    )
    for name, says, summary, schema in (
        ("get_bs", running, "Requests that run", schemas.Number),
        ("get_request_numbers", waiting, "Requests that wait", schemas.Number),
        ("get_serverd_model_info", model_info, "Name and limits of the model", schemas.ServedModelInfo),
    ):
        answer = answer_with(models.directory, says)
        yield Route("GET", f"/serving/{name}", answer, summary=summary, events_schema=schema)
