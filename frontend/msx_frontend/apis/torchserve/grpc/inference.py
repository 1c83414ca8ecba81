"""TorchServe's inference service: from a request to a job, from the job's reply to responses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

from msx_core.held_bytes import HeldBytes
from msx_core.priorities import NAMES, NORMAL, class_headers
from msx_core.replies.reply_buffer import ReplyBuffer
from msx_core.replies.sink import Sink
from msx_core.sequences import SequenceKeys
from msx_core.service_errors import BadRequest, ServiceError
from msx_frontend.apis.torchserve.grpc.sequences import SequenceNamer, SequenceRequest, answers_in_order
from msx_frontend.apis.torchserve.grpc.status import details, status_message, torchserve_code
from msx_frontend.job import PREDICT, STREAM, Field, Job, method_kind
from msx_frontend.job_headers import KeptHeaders
from msx_net.grpc.buffered_reply import reply_to
from msx_net.grpc.context import CallContext, LogsCalls
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import JobMethod, Rpc, Service, describe
from msx_net.grpc.unary_reply import ResponseTooLarge

SERVICE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"

_HealthResponse = message_class("org.pytorch.serve.grpc.inference.TorchServeHealthResponse")
_PredictionResponse = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")

_OF_CLASSES = {priority: KeptHeaders(class_headers(priority)) for priority in NAMES.values()}
"""Headers that a handler sees besides its inputs, by priority class: the class, where it is not the usual one."""


class Pings(Protocol):
    def ping(self) -> tuple[int, str]:
        """TorchServe's HTTP status and its word of health: Pingsy or Unhealthy."""


class TakesJobs(Protocol):
    def submit(self, job: Job) -> None:
        """Raises ServiceError when the job cannot be taken."""


class InferenceService:
    """`max_response_size` is in bytes of one prediction; `keys` name the headers of sequences."""

    def __init__(
        self,
        registry: TakesJobs,
        health: Pings,
        *,
        keys: SequenceKeys,
        max_response_size: int,
        access_log: LogsCalls | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        self._registry = registry
        self._health = health
        self._keys = keys
        self._max_response_size = max_response_size
        self._access_log = access_log
        self._held = held or HeldBytes()

    def service(self) -> Service:
        predictions = JobMethod(submit=self._job, response=_prediction, limit=self._max_response_size, held=self._held)
        methods = {
            "Ping": Rpc(self._ping),
            "Predictions": Rpc(predictions, model="model_name"),
            "StreamPredictions": Rpc(self._stream_predictions, model="model_name"),
            "StreamPredictions2": Rpc(self._stream_predictions2),
        }
        return describe(SERVICE, methods, code_of=torchserve_code, details_of=details, access_log=self._access_log)

    async def _ping(self, request: Any, context: CallContext) -> Any:
        return _HealthResponse(health=json.dumps({"status": self._health.ping()[1]}, indent=2))

    async def _stream_predictions(self, request: Any, context: CallContext) -> None:
        """A response for each chunk; an empty one when there was none, so that success always says something."""
        reply = reply_to(context.admitted)
        try:
            reply.hold = self._held.hold(request.ByteSize())
            reply.job = self._job(request, context.admitted.id, context.deadline, reply, STREAM)
            async for chunk in _said(reply):
                await context.write(self._response(chunk))
        finally:
            reply.close()

    async def _stream_predictions2(self, requests: Any, context: CallContext) -> None:
        """The requests of one sequence, and their answers in order; an error of one does not end the call."""
        admitted = context.admitted
        sequence = SequenceNamer(self._keys)

        def ask(request: Any, number: int) -> SequenceRequest:
            reply = reply_to(context.admitted)
            try:
                id, headers = sequence.headers(request)
                own_id = admitted.id
                if number > 1:
                    own_id = f"{own_id}-{number}"
                    admitted.count_request()
                admitted.check_model(request.model_name)
                reply.hold = self._held.hold(request.ByteSize())
                reply.job = self._ask(request, own_id, context.deadline, headers, reply)
                return SequenceRequest(id, reply)
            except ServiceError as error:
                reply.close()
                return SequenceRequest(request.sequence_id, error)

        async with aclosing(answers_in_order(requests, ask)) as answers:
            async for asked in answers:
                await self._answer(asked, context)

    async def _answer(self, asked: SequenceRequest, context: CallContext) -> None:
        try:
            async for chunk in _said(asked.reply()):
                await context.write(self._response(chunk, sequence_id=await asked.name(self._keys.id)))
        except ServiceError as error:
            await context.write(_PredictionResponse(sequence_id=asked.id, status=status_message(error)))
        finally:
            asked.close()

    def _job(self, request: Any, id: str, deadline: float | None, sink: Sink, kind: str = PREDICT) -> Job:
        """Raises ServiceError when it is not taken."""
        sequence: str = request.sequence_id
        headers = SequenceNamer(self._keys).headers(request)[1] if sequence else []
        return self._ask(request, id, deadline, headers, sink, kind)

    def _ask(
        self,
        request: Any,
        id: str,
        deadline: float | None,
        headers: list[tuple[str, str]],
        sink: Sink,
        kind: str = PREDICT,
    ) -> Job:
        """Raises ServiceError when the job is not taken."""
        if not request.model_name:
            raise BadRequest("Parameter model_name is required.")
        inputs, of_class = request.input, _OF_CLASSES[getattr(sink, "priority", NORMAL)]
        model, _, method = request.model_name.partition(":")
        job = Job(
            id,
            model,
            request.model_version or None,
            [Field(name, None, inputs[name]) for name in inputs],
            [*headers, *of_class] if headers else of_class,
            sink,
            kind=method_kind(method) if method else kind,
            deadline=deadline,
        )
        self._registry.submit(job)
        return job

    def _response(self, data: bytes, **more: Any) -> Any:
        if len(data) > self._max_response_size:
            raise ResponseTooLarge(self._max_response_size)
        return _PredictionResponse(prediction=bytes(data), **more)  # a large one is a bytearray


def _prediction(data: bytes) -> Any:
    return _PredictionResponse(prediction=bytes(data))  # a large one is a bytearray


async def _said(reply: ReplyBuffer) -> AsyncIterator[bytes]:
    """Its chunks, or an empty one. Raises the job's ServiceError."""
    silent = True
    async for chunk in reply:
        yield chunk
        silent = False
    if silent:
        yield b""
