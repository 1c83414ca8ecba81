"""The prediction endpoint: bare ASGI over a job and its reply, because it is the hot path."""

from __future__ import annotations

from msx_frontend.errors import BadRequest, ResourceNotFound, ServiceError
from msx_frontend.http.call import Call
from msx_frontend.http.disconnect import DisconnectWatch
from msx_frontend.http.wire import (
    ClientGone,
    RawHeaders,
    Receive,
    Send,
    StreamBroken,
    read_body,
    reply_headers,
    send_error,
    send_whole,
)
from msx_frontend.job import EXPLAIN, PREDICT, Field, Job
from msx_frontend.parse import fields_of_query, merge_fields, parse_fields
from msx_frontend.registry import Registry
from msx_frontend.reply_buffer import ReplyBuffer


class PredictionEndpoint:
    """`/predictions/{model}[/{version}[/...]]`, `/explanations/...`, and `/invocations`."""

    def __init__(self, registry: Registry, max_request_size: int, only_model: str | None = None) -> None:
        self._registry, self._limit = registry, max_request_size
        self.only_model = only_model

    @staticmethod
    def serves(path: str) -> bool:
        return path.startswith(("/predictions/", "/explanations/")) or path.rstrip("/") == "/invocations"

    async def __call__(self, call: Call, receive: Receive, send: Send) -> int:
        """Answer; returns the status for the access log."""
        try:
            body = await read_body(receive, call.content_length, self._limit)
            reply = ReplyBuffer()
            job = self._job(call, body, reply)
            reply.job = job
            self._registry.submit(job)
        except ServiceError as error:
            await send_error(send, error, call.id)
            return error.status
        except ClientGone:
            return 499
        return await _answer(job, reply, receive, send)

    def _job(self, call: Call, body: bytes, reply: ReplyBuffer) -> Job:
        if call.path.startswith("/invocations"):
            return self._invocation(call, body, reply)
        _, kind, *rest = call.path.split("/", 4)
        model, version, url_path = [*rest, "", "", ""][:3]
        if not model:
            raise ResourceNotFound
        explain = kind == "explanations"
        headers = [*call.headers(), ("explain", "True" if explain else "False"), ("url_path", url_path)]
        fields = parse_fields(call.content_type, body)
        kind = EXPLAIN if explain else PREDICT
        return Job(call.id, model, version or None, fields, headers, reply, kind=kind)

    def _invocation(self, call: Call, body: bytes, reply: ReplyBuffer) -> Job:
        """SageMaker's route: the model is a parameter, query parameters and form fields are inputs."""
        fields = merge_fields(parse_fields(call.content_type, body), fields_of_query(call.query))
        model = _text(fields, "model_name") or self.only_model
        if model is None:
            raise BadRequest("Parameter model_name is required.")
        return Job(call.id, model, None, fields, list(call.headers()), reply)


async def _answer(job: Job, reply: ReplyBuffer, receive: Receive, send: Send) -> int:
    watch = DisconnectWatch(job.cancel, receive)
    try:
        status, _, headers = await reply.head()
        raw = reply_headers(job.id, headers)
        if reply.whole:
            await send_whole(send, status, raw, (await reply.take())[0])
        else:
            watch.start()
            await _stream(send, status, raw, reply)
        return status
    except ServiceError as error:
        if not job.cancelled or error.status != 499:
            await send_error(send, error, job.id)
        return error.status
    finally:
        watch.stop()
        reply.close()


async def _stream(send: Send, status: int, headers: RawHeaders, reply: ReplyBuffer) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"ts_stream_next", b"true")]})
    try:
        async for data in reply:
            await send({"type": "http.response.body", "body": data, "more_body": True})
    except ServiceError as error:
        raise StreamBroken(error) from None
    await send({"type": "http.response.body", "body": b""})


def _text(fields: list[Field], name: str) -> str | None:
    return next((field.data.decode("utf-8", "replace") for field in fields if field.name == name), None)
