"""OpenAPI 3.0.1 descriptions, made from one table of what each listener serves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from msx_frontend import __version__

_TITLE = "TorchServe APIs"
_TEXT = "TorchServe is a flexible and easy to use tool for serving deep learning models"
"""Clients that look at the title look for this one."""


class Operation(NamedTuple):
    path: str
    method: str
    operation: str
    summary: str
    queries: tuple[tuple[str, str], ...] = ()


INFERENCE = (
    Operation("/", "options", "apiDescription", "This description"),
    Operation("/api-description", "get", "apiDescription", "This description"),
    Operation("/ping", "get", "ping", "Healthy unless a model has workers that will not come back"),
    Operation("/livez", "get", "live", "The process answers; needs no token"),
    Operation(
        "/readyz",
        "get",
        "ready",
        "Requests should be sent here: models serve, and the server is not ending; needs no token",
    ),
    Operation("/predictions/{model_name}", "post", "predictions", "Predict by the default version"),
    Operation("/predictions/{model_name}/{model_version}", "post", "version_predictions", "Predict by one version"),
    Operation("/explanations/{model_name}", "post", "explanations", "Explain by the default version"),
    Operation("/explanations/{model_name}/{model_version}", "post", "version_explanations", "Explain by one version"),
    Operation("/invocations", "post", "invocations", "SageMaker's route", (("model_name", "string"),)),
    Operation("/wfpredict/{workflow_name}", "post", "workflow_predictions", "Predict by a workflow"),
    Operation("/models/{model_name}/invoke", "post", "invoke", "SageMaker's route with several models"),
    Operation("/{model_name}/predict", "post", "predict", "An older route"),
    Operation("/{model_name}/{model_version}/predict", "post", "version_predict", "An older route"),
    Operation("/v1/models/{model_name}:predict", "post", "kserve_predictions", "KServe v1"),
    Operation("/v1/models/{model_name}:explain", "post", "kserve_explanations", "KServe v1"),
)

_REGISTER = (
    ("url", "string"),
    ("model_name", "string"),
    ("handler", "string"),
    ("runtime", "string"),
    ("batch_size", "integer"),
    ("max_batch_delay", "integer"),
    ("initial_workers", "integer"),
    ("response_timeout", "integer"),
    ("startup_timeout", "integer"),
    ("synchronous", "boolean"),
    ("s3_sse_kms", "boolean"),
    ("replace", "boolean"),
)
_WORKFLOW = (("url", "string"), ("workflow_name", "string"))
_PAGE = (("limit", "integer"), ("next_page_token", "string"))
_DESCRIBE = (("customized", "boolean"),)
_SCALE = (("min_worker", "integer"), ("max_worker", "integer"), ("synchronous", "boolean"))

MANAGEMENT = (
    Operation("/", "options", "apiDescription", "This description"),
    Operation("/api-description", "get", "apiDescription", "This description"),
    Operation("/ping", "get", "ping", "Healthy unless a model has workers that will not come back"),
    Operation("/token", "get", "token", "A new key of a kind, for who has the API key", (("type", "string"),)),
    Operation("/models", "get", "listModels", "List models", _PAGE),
    Operation("/models", "post", "registerModel", "Register a model of the model store", _REGISTER),
    Operation("/models/{model_name}", "get", "describeModel", "Describe the default version", _DESCRIBE),
    Operation("/models/{model_name}", "put", "scaleWorker", "Scale the default version", _SCALE),
    Operation("/models/{model_name}", "delete", "unregisterModel", "Unregister the default version"),
    Operation(
        "/models/{model_name}/{model_version}",
        "get",
        "version_describeModel",
        "Describe one version, or `all`",
        _DESCRIBE,
    ),
    Operation("/models/{model_name}/{model_version}", "put", "version_scaleWorker", "Scale one version", _SCALE),
    Operation("/models/{model_name}/{model_version}", "delete", "version_unregisterModel", "Unregister one version"),
    Operation("/models/{model_name}/{model_version}/set-default", "put", "setDefault", "Set the default version"),
    Operation("/workflows", "get", "listWorkflows", "List workflows", _PAGE),
    Operation("/workflows", "post", "registerWorkflow", "Register a workflow of the workflow store", _WORKFLOW),
    Operation("/workflows/{workflow_name}", "get", "describeWorkflow", "Describe a workflow"),
    Operation("/workflows/{workflow_name}", "delete", "unregisterWorkflow", "Unregister a workflow and its nodes"),
    Operation("/v1/models/{model_name}", "get", "kserveReady", "KServe v1: has it a worker that answers?"),
)

METRICS = (Operation("/metrics", "get", "metrics", "For Prometheus", (("name[]", "string"),)),)


Operations = Sequence[Operation]


def inference_description(more: Operations = ()) -> dict[str, Any]:
    """`more`: what plugins serve."""
    return _description(_TITLE, (*INFERENCE, *more))


def management_description(more: Operations = ()) -> dict[str, Any]:
    return _description(_TITLE, (*MANAGEMENT, *more))


def metrics_description(more: Operations = ()) -> dict[str, Any]:
    return _description(_TITLE, (*METRICS, *more))


def merged_description(more: Operations = ()) -> dict[str, Any]:
    return _description(_TITLE, tuple(dict.fromkeys((*INFERENCE, *MANAGEMENT, *METRICS, *more))))


def model_description(name: str) -> dict[str, Any]:
    operation = Operation(f"/predictions/{name}", "post", "predictions", f"Predict by {name}")
    return _description(f"RESTful API for: {name}", (operation,))


def managed_model_description(name: str) -> dict[str, Any]:
    """What can be managed of one model."""
    own = [one for one in MANAGEMENT if one.path.startswith("/models/{model_name}")]
    named = tuple(one._replace(path=one.path.replace("{model_name}", name)) for one in own)
    return _description(f"RESTful Management API for: {name}", named)


def _description(title: str, operations: tuple[Operation, ...]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.0.1",
        "info": {"title": title, "description": _TEXT, "version": __version__},
        "paths": paths,
    }


def _operation(operation: Operation) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", operation.path)
    parameters = [_parameter(name, "path", "string") for name in names]
    parameters += [_parameter(name, "query", kind) for name, kind in operation.queries]
    described: dict[str, Any] = {"summary": operation.summary, "operationId": operation.operation}
    if parameters:
        described["parameters"] = parameters
    if operation.operation.endswith(_WITH_BODY):
        described["requestBody"] = {"required": True, "content": {"*/*": {"schema": _BINARY}}}
    described["responses"] = {"200": {"description": "OK"}, "default": {"description": "Error", "content": _ERROR}}
    return described


def _parameter(name: str, place: str, kind: str) -> dict[str, Any]:
    required = place == "path" or name == "url"
    return {"in": place, "name": name, "required": required, "schema": {"type": kind}}


_WITH_BODY = ("predictions", "explanations", "invocations", "invoke", "predict")
_BINARY = {"type": "string", "format": "binary"}
_ERROR = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["code", "type", "message"],
            "properties": {
                "code": {"type": "integer"},
                "type": {"type": "string"},
                "message": {"type": "string"},
            },
        }
    }
}
