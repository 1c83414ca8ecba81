"""The APIs that are not families yet: language models, and what Starlette routes."""

from __future__ import annotations

from starlette.types import ASGIApp

from msx_frontend.errors import PayloadTooLarge, ServiceError
from msx_frontend.generation.endpoint import LanguageModels
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.failures import failure_reply
from msx_frontend.net.http.family import Family
from msx_frontend.net.http.gate import MANAGEMENT, WORKFLOW, Gate
from msx_frontend.net.http.response_head import ResponseHead
from msx_frontend.net.http.wire import Message, Receive, Send, common_headers


class Unconverted:
    """`family` says the gate's refusals."""

    def __init__(
        self, app: ASGIApp, family: Family, *, gate: Gate | None = None, language_models: LanguageModels | None = None
    ) -> None:
        self._app, self._family, self._gate, self._language_models = app, family, gate, language_models

    def serves(self, method: str, path: str, *, owned: bool) -> bool:
        language = self._language_models
        if not owned or path.split("/", 2)[1] in MANAGEMENT:
            return True
        return language is not None and language.serves(method, path)

    async def __call__(self, call: Call, receive: Receive, send: ResponseHead) -> int:
        language = self._language_models
        if language is not None and language.serves(call.method, call.path):
            send.errors_close = False
            return await language(call, receive, send)
        try:
            if self._gate is not None:
                call.use(self._gate.check(call))
            if call.path.startswith(WORKFLOW):
                call.check_model(call.path.removeprefix(WORKFLOW))
        except ServiceError as error:
            status, headers, body = failure_reply(self._family, error, call.id)
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return status
        reply = _Reply(call, send)
        call.scope["msx.request_id"] = call.id
        call.scope["msx.call"] = call
        await self._app(call.scope, receive, reply)
        return reply.status


class _Reply:
    """Adds the common headers to what the routed app answers."""

    def __init__(self, call: Call, send: Send) -> None:
        self._call, self._send = call, send
        self.status = 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.status != PayloadTooLarge.status:  # TorchServe's has no id
                own = {name for name, _ in message["headers"]}
                common = [pair for pair in common_headers(self._call.id) if pair[0] not in own]
                message["headers"] = [*message["headers"], *common]
        await self._send(message)
