"""The endpoints of workflows: predictions on the inference listener, and their management."""

from __future__ import annotations

from msx_frontend.net.http.failures import torchserve_failure
from msx_frontend.net.http.family import Family, Reply, Route
from msx_frontend.net.http.parameters import parameters
from msx_frontend.net.http.parse import parse_fields
from msx_frontend.net.http.replies import STATUS_SCHEMA, json_reply, status_reply
from msx_frontend.net.http.request import Request
from msx_frontend.net.http.wire import BODYLESS
from msx_frontend.workflows.api import WorkflowApi
from msx_frontend.workflows.execution import Execution
from msx_frontend.workflows.workflow import WorkflowRegistry

NAME = "workflow_name"
WORKFLOW = "/workflows/{workflow_name}"
REGISTER = (("url", "string"), (NAME, "string"))
PAGE = (("limit", "integer"), ("next_page_token", "string"))


def workflow_predictions(registry: WorkflowRegistry, max_response_size: int) -> Family:
    async def predict(request: Request) -> Reply:
        registry.check_serving()
        workflow, call = registry.find(request.names[NAME]), request.call
        fields = parse_fields(call.content_type, request.body)
        execution = Execution(workflow, call.id, fields, call.headers(), max_response_size)
        request.when_left(execution.cancel)
        answer = await execution.run()
        body = b"" if answer.status in BODYLESS else answer.body
        return Reply(body, answer.status, answer.headers, answer.phrase)

    route = Route(
        "POST",
        f"/wfpredict/{{{NAME}}}",
        predict,
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
        Route("GET", "/workflows", show_all, summary="List workflows", operation="listWorkflows", queries=PAGE),
        Route(
            "POST",
            "/workflows",
            register,
            summary="Register a workflow",
            operation="registerWorkflow",
            queries=REGISTER,
        ),
        Route("GET", WORKFLOW, describe, summary="Describe a workflow", operation="describeWorkflow"),
        Route(
            "DELETE",
            WORKFLOW,
            unregister,
            summary="Unregister a workflow and its nodes",
            operation="unregisterWorkflow",
        ),
    )
    managed = tuple(
        route._replace(key="management", response_schema=None if route.method == "GET" else STATUS_SCHEMA)
        for route in routes
    )
    return Family(
        "workflow management",
        managed,
        torchserve_failure,
        listener="management",
        closes_on_error=True,
        takes_as_sent=True,
    )
