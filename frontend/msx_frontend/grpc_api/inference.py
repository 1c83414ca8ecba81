"""TorchServe's inference service: from a request to a job, from the job's reply to responses."""

from __future__ import annotations

import json
import time
from typing import Any, NoReturn, Protocol

import grpc

from msx_frontend.errors import BadRequest, MethodNotAllowed, ServiceError
from msx_frontend.grpc_api.handlers import REQUEST_ID, Context, LogsCalls, service_handler
from msx_frontend.grpc_api.messages import message_class
from msx_frontend.grpc_api.status import torchserve_code
from msx_frontend.ids import new_request_id
from msx_frontend.job import Field, Job
from msx_frontend.reply_buffer import ReplyBuffer
from msx_frontend.tokens import Kind

SERVICE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"

_HealthResponse = message_class("org.pytorch.serve.grpc.inference.TorchServeHealthResponse")
_PredictionResponse = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")


class Pings(Protocol):
    def ping(self) -> tuple[int, str]:
        """TorchServe's HTTP status and its word of health: Pingsy or Unhealthy."""


class TakesJobs(Protocol):
    def submit(self, job: Job) -> None:
        """Raises ServiceError when the job cannot be taken."""


class ChecksTokens(Protocol):
    def check(self, kind: Kind, authorization: str | None) -> None:
        """Raises InvalidKey."""


class ResponseTooLarge(ServiceError):
    grpc_code = "RESOURCE_EXHAUSTED"


class InferenceService:
    """`tokens` is None when authorization is off; `max_response_size` is in bytes of one prediction."""

    def __init__(
        self,
        registry: TakesJobs,
        health: Pings,
        tokens: ChecksTokens | None,
        *,
        max_response_size: int,
        access_log: LogsCalls | None = None,
    ) -> None:
        self._registry, self._health, self._tokens = registry, health, tokens
        self._max_response_size, self._access_log = max_response_size, access_log

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        methods = {
            "Ping": self._ping,
            "Predictions": self._predictions,
            "StreamPredictions": self._stream_predictions,
            "StreamPredictions2": self._stream_predictions2,
        }
        return service_handler(SERVICE, methods, code_of=torchserve_code, access_log=self._access_log)

    async def _ping(self, request: Any, context: Context) -> Any:
        self._admit(context)
        return _HealthResponse(health=json.dumps({"status": self._health.ping()[1]}, indent=2) + "\n")

    async def _predictions(self, request: Any, context: Context) -> Any:
        """The whole answer in one response, also that of a handler that streams."""
        reply = self._submit(request, context)
        try:
            return self._response(await self._whole(reply))
        finally:
            reply.close()

    async def _whole(self, reply: ReplyBuffer) -> bytes:
        parts: list[bytes] = []
        size, ended = 0, False
        while not ended:
            data, ended = await reply.take()
            size += len(data)
            self._check_size(size)
            parts.append(data)
        return b"".join(parts)

    async def _stream_predictions(self, request: Any, context: Context) -> None:
        """A response for each chunk; an empty one when there was none, so that success always says something."""
        reply = self._submit(request, context)
        silent = True
        try:
            async for chunk in reply:
                await context.write(self._response(chunk))
                silent = False
            if silent:
                await context.write(self._response(b""))
        finally:
            reply.close()

    async def _stream_predictions2(self, requests: Any, context: Context) -> NoReturn:
        self._admit(context)
        raise MethodNotAllowed(
            "StreamPredictions2 is not served, because sequence batching is not there yet: "
            "call StreamPredictions once for each request."
        )

    def _submit(self, request: Any, context: Context) -> ReplyBuffer:
        request_id = self._admit(context)
        if not request.model_name:
            raise BadRequest("Parameter model_name is required.")
        reply = ReplyBuffer()
        job = Job(
            request_id,
            request.model_name,
            request.model_version or None,
            [Field(name, None, data) for name, data in request.input.items()],
            [("explain", "False"), ("url_path", "")],
            reply,
            deadline=_deadline(context),
        )
        self._registry.submit(job)
        reply.job = job
        return reply

    def _admit(self, context: Context) -> str:
        """The request's id, which the client may choose and gets back. Raises InvalidKey."""
        given = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        request_id = given.get(REQUEST_ID) or new_request_id()
        context.set_trailing_metadata(((REQUEST_ID, request_id),))
        if self._tokens is not None:
            self._tokens.check("inference", given.get("authorization"))
        return request_id

    def _response(self, data: bytes) -> Any:
        self._check_size(len(data))
        return _PredictionResponse(prediction=data)

    def _check_size(self, size: int) -> None:
        if size > self._max_response_size:
            raise ResponseTooLarge(
                f"The response has more than max_response_size ({self._max_response_size} bytes): "
                "raise it in config.properties, or let the handler send smaller pieces to StreamPredictions."
            )


def _deadline(context: Context) -> float | None:
    left: float | None = context.time_remaining()  # None without a deadline
    return None if left is None else time.monotonic() + left
