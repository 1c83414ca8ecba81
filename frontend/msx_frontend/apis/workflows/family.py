"""The endpoints of workflows: predictions on the inference listener, and their management."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msx_frontend.body_fields import fields_parser
from msx_frontend.job import Job
from msx_frontend.job_headers import KeptHeaders
from msx_frontend.workflows.api import WorkflowApi
from msx_net.http.failures import torchserve_failure
from msx_net.http.family import Family, JobRoute, JsonSchema, Names, Reply, ReplySink, Route
from msx_net.http.head import Head
from msx_net.http.parameters import parameters
from msx_net.http.replies import STATUS_SCHEMA, json_reply, status_reply
from msx_net.http.request import Request
from msx_net.keys import ClientKey

Submit = Callable[[Job], None]

NAME = "workflow_name"
WORKFLOW = "/workflows/{workflow_name}"
REGISTER = (("url", "string"), (NAME, "string"))
PAGE = (("limit", "integer"), ("next_page_token", "string"))
_NAMED: JsonSchema = {"workflowName": {"type": "string"}, "workflowUrl": {"type": "string"}}
LISTED: JsonSchema = {
    "type": "object",
    "required": ["workflows"],
    "properties": {
        "workflows": {"type": "array", "items": {"type": "object", "required": [*_NAMED], "properties": _NAMED}},
        "nextPageToken": {"type": "string", "description": "For next_page_token, where there are more"},
    },
}
DESCRIBED: JsonSchema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": [*_NAMED, "minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "workflowDag"],
        "properties": {
            **_NAMED,
            **{name: {"type": "integer"} for name in ("minWorkers", "maxWorkers", "batchSize", "maxBatchDelay")},
            "workflowDag": {"type": "string"},
        },
    },
}


class WorkflowTemplate:
    """Parts of a workflow's job that its request's head decides."""

    def __init__(self, submit: Submit, head: Head, names: Names) -> None:
        self._submit, self._name = submit, names[NAME]
        self._headers, self._fields = KeptHeaders(head.headers()), fields_parser(head.content_type)
        self.key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        job = sink.job = Job(id, self._name, None, self._fields(body), self._headers, sink)
        self._submit(job)


def workflow_predictions(submit: Submit) -> Family:
    route = Route(
        "POST",
        f"/wfpredict/{{{NAME}}}",
        JobRoute(partial(WorkflowTemplate, submit)),
        summary="Predict by a workflow",
        operation="workflow_predictions",
        any_method=True,
        model=NAME,  # keys name workflows as they name models
    )
    return Family("workflows", (route,), torchserve_failure, closes_on_error=True, takes_as_sent=True)


def workflow_management(api: WorkflowApi) -> Family:
    async def show_all(request: Request) -> Reply:
        return json_reply(api.workflows(request.query))

    async def register(request: Request) -> Reply:
        return status_reply(await api.register(parameters(request)))

    async def describe(request: Request) -> Reply:
        return json_reply(api.describe(request.names[NAME]))

    async def unregister(request: Request) -> Reply:
        return status_reply(await api.unregister(request.names[NAME]))

    routes = (
        Route(
            "GET",
            "/workflows",
            show_all,
            summary="List workflows",
            operation="listWorkflows",
            queries=PAGE,
            response_schema=LISTED,
        ),
        Route(
            "POST",
            "/workflows",
            register,
            summary="Register a workflow",
            operation="registerWorkflow",
            queries=REGISTER,
            example={"url": "pipeline.war"},
        ),
        Route(
            "GET",
            WORKFLOW,
            describe,
            summary="Describe a workflow",
            operation="describeWorkflow",
            response_schema=DESCRIBED,
        ),
        Route(
            "DELETE",
            WORKFLOW,
            unregister,
            summary="Unregister a workflow and its nodes",
            operation="unregisterWorkflow",
        ),
    )
    managed = tuple(
        route._replace(key="management", response_schema=route.response_schema or STATUS_SCHEMA) for route in routes
    )
    return Family(
        "workflow management",
        managed,
        torchserve_failure,
        listener="management",
        closes_on_error=True,
        takes_as_sent=True,
    )
