"""The outermost layer of a listener: tokens, request ids, the headers of every reply, CORS, the access log."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp

from msx_frontend.apis.kserve.endpoint import OpenInference
from msx_frontend.apis.torchserve.prediction import PredictionEndpoint
from msx_frontend.apis.torchserve.targets import target_of
from msx_frontend.errors import PayloadTooLarge, RequestCancelled, ServiceError
from msx_frontend.generation.endpoint import LanguageModels
from msx_frontend.held_bytes import HOLD, HeldBytes
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.direct import Direct
from msx_frontend.net.http.gate import WORKFLOW, Gate
from msx_frontend.net.http.status_line import EXTENSION as STATUS_LINE
from msx_frontend.net.http.wire import (
    LogsReplies,
    Message,
    RawHeaders,
    Receive,
    Scope,
    Send,
    StreamBroken,
    common_headers,
    send_error,
)

log = logging.getLogger("msx.http")


class Edge:
    """Pure ASGI. Predictions and language models go straight to their endpoints, everything else to the routed app."""

    def __init__(
        self,
        app: ASGIApp,
        access_log: LogsReplies,
        *,
        gate: Gate | None = None,
        predictions: PredictionEndpoint | None = None,
        language_models: LanguageModels | None = None,
        open_inference: OpenInference | None = None,
        cors: RawHeaders | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        self._app, self._access_log = app, access_log
        self._gate, self._predictions, self._language_models = gate, predictions, language_models
        self._open_inference = open_inference
        self._cors = cors or []
        self._held = held or HeldBytes()

    def direct(self) -> Direct | None:
        """For connections that answer predictions by themselves, by the same rules; None where there are none."""
        if self._predictions is None:
            return None
        return Direct(self._predictions, self._access_log, self._gate, self._cors, self._held)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        scope["path"] = scope["path"].rstrip("/") or "/"
        call = Call(scope)
        status, body = 500, _Body(receive, self._held)
        scope[HOLD] = body.hold
        try:
            status = await self._serve(call, body, _Head(call, send, self._cors))
        except StreamBroken as broken:
            status = broken.status
            level = logging.INFO if status == RequestCancelled.status else logging.WARNING
            log.log(level, "a stream was cut: %s", broken, extra={"request_id": call.id})
            raise
        finally:
            body.hold.release()
            self._access_log.write(call, status)

    async def _serve(self, call: Call, receive: Receive, send: _Head) -> int:
        target = target_of(call.path) if self._predictions is not None else None
        language = self._language_models
        if target is None and language is not None and language.serves(call.method, call.path):
            send.errors_close = False
            return await language(call, receive, send)
        if self._open_inference is not None and self._open_inference.serves(call.path):
            send.errors_close = False
            return await self._open_inference(call, receive, send)
        try:
            if self._gate is not None:
                call.use(self._gate.check(call))
            if call.path.startswith(WORKFLOW):
                call.check_model(call.path.removeprefix(WORKFLOW))
        except ServiceError as error:
            await send_error(send, error, call.id)
            return error.status
        if target is not None and self._predictions is not None:
            return await self._predictions(call, target, receive, send)
        reply = _Reply(call, send)
        call.scope["msx.request_id"] = call.id
        call.scope["msx.call"] = call
        await self._app(call.scope, receive, reply)
        return reply.status


class _Body:
    """Counts what is read, until the request is answered. Raises ServiceError where that is too much."""

    def __init__(self, receive: Receive, held: HeldBytes) -> None:
        self._receive, self.hold = receive, held.hold()

    async def __call__(self) -> Message:
        message = await self._receive()
        if data := message.get("body"):
            self.hold.resize(self.hold.size + len(data))
        return message


class _Head:
    """Completes every reply's head: whether the connection stays open, CORS, and a phrase that somebody chose."""

    def __init__(self, call: Call, send: Send, cors: RawHeaders) -> None:
        self._call, self._send, self._cors = call, send, cors
        self.errors_close = True
        """TorchServe's rule; the language models' APIs keep the connection."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *self._connection(message), *self._cors]
            if (reason := message.pop("reason", None)) and (line := self._call.scope["extensions"].get(STATUS_LINE)):
                line.reason = reason
        await self._send(message)

    def _connection(self, message: Message) -> RawHeaders:
        if any(name == b"connection" for name, _ in message["headers"]):
            return []
        closes = self.errors_close and message["status"] >= 400
        return [(b"connection", b"keep-alive" if self._call.keeps_alive and not closes else b"close")]


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
