"""The endpoints of workflows on both listeners."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msx_frontend.apis.torchserve.routes import ANY, JsonReply, parameters, read_whole, status_reply
from msx_frontend.errors import MethodNotAllowed
from msx_frontend.net.http.disconnect import DisconnectWatch
from msx_frontend.net.http.parse import parse_fields
from msx_frontend.net.http.wire import BODYLESS, Message, Receive, Scope, Send, own_headers, reason_of
from msx_frontend.workflows.api import WorkflowApi
from msx_frontend.workflows.execution import Execution
from msx_frontend.workflows.node_call import NodeAnswer
from msx_frontend.workflows.workflow import WorkflowRegistry


def inference_routes(registry: WorkflowRegistry, max_request_size: int, max_response_size: int) -> list[Route]:
    async def predict(request: Request) -> Response:
        registry.check_serving()
        workflow = registry.find(request.path_params["workflow"])
        body = await read_whole(request, max_request_size)
        fields = parse_fields(request.headers.get("content-type", "").encode("latin-1"), body)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]]
        execution = Execution(workflow, request.scope["msx.request_id"], fields, headers, max_response_size)
        watch = DisconnectWatch(execution.cancel, request.receive)
        try:
            return _reply(await execution.run())
        finally:
            watch.stop()

    return [Route("/wfpredict/{workflow}", predict, methods=ANY)]


def management_routes(api: WorkflowApi, max_request_size: int) -> list[Route]:
    async def workflows(request: Request) -> Response:
        if request.method in ("GET", "HEAD"):
            return JsonReply(api.workflows(request.query_params))
        if request.method != "POST":
            raise MethodNotAllowed
        return status_reply(await api.register(await parameters(request, max_request_size)))

    async def workflow(request: Request) -> Response:
        name = request.path_params["workflow"]
        if request.method in ("GET", "HEAD"):
            return JsonReply(api.describe(name))
        if request.method != "DELETE":
            raise MethodNotAllowed
        return status_reply(await api.unregister(name))

    return [
        Route("/workflows", workflows, methods=ANY),
        Route("/workflows/{workflow}", workflow, methods=ANY),
    ]


class _Reply(Response):
    """With a phrase of its own in the status line."""

    reason = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if self.reason and message["type"] == "http.response.start":
                message["reason"] = self.reason
            await send(message)

        await super().__call__(scope, receive, told)


def _reply(answer: NodeAnswer) -> Response:
    reply = _Reply(b"" if answer.status in BODYLESS else answer.body, answer.status)
    reply.raw_headers += own_headers(answer.headers)
    reply.reason = reason_of(answer.phrase)
    return reply
