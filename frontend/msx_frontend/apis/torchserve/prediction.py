"""The prediction endpoint: what a request becomes, and the ASGI way to its answer (`direct.py` has the short one)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from msx_frontend.apis.torchserve.openapi import model_description
from msx_frontend.apis.torchserve.targets import Target
from msx_frontend.errors import BadRequest, ServiceError
from msx_frontend.job import Field, Job, KeptHeaders, Sink
from msx_frontend.keys.key import Key
from msx_frontend.models.registry import Registry
from msx_frontend.net.http.call import Call
from msx_frontend.net.http.disconnect import DisconnectWatch
from msx_frontend.net.http.head import Head
from msx_frontend.net.http.parse import fields_of_query, fields_parser, merge_fields
from msx_frontend.net.http.wire import (
    ClientGone,
    Receive,
    Send,
    StreamBroken,
    common_headers,
    json_bytes,
    read_body,
    reason_of,
    reply_headers,
    send_error,
    send_whole,
    start_message,
)
from msx_frontend.queueing.reply_buffer import ReplyBuffer


class Reply(Sink, Protocol):
    job: Job | None


class Order:
    """What a head says of the job: made once for all requests that have the same."""

    __slots__ = ("fields", "headers", "key", "target")

    def __init__(self, head: Head, target: Target) -> None:
        self.target, self.headers = target, KeptHeaders([*head.headers(), *target.headers])
        self.key: Key | None = None
        """Where it is good for some models only."""
        self.fields = fields_parser(head.content_type)
        """Of a body. Raises BadRequest."""
        if target.takes_query and head.query:
            self.fields = partial(_with_query, self.fields, head.query)


class PredictionEndpoint:
    """Predictions by every path of `targets.py`."""

    def __init__(self, registry: Registry, max_request_size: int, only_model: str | None = None) -> None:
        self._registry, self.max_request_size = registry, max_request_size
        self.only_model = only_model

    async def __call__(self, call: Call, target: Target, receive: Receive, send: Send) -> int:
        """Answer; returns the status for the access log."""
        try:
            if call.method == "OPTIONS" and target.model is not None:
                call.check_model(target.model)
                return await self._describe(target.model, call, send)
            body = await read_body(receive, call.content_length, self.max_request_size)
            reply = ReplyBuffer()
            order = Order(call, target)
            order.key = call.key
            job = self.submit(order, call.id, body, reply)
        except ServiceError as error:
            await send_error(send, error, call.id)
            return error.status
        except ClientGone:
            return 499
        return await _answer(job, reply, receive, send)

    def submit(self, order: Order, id: str, body: bytes, reply: Reply) -> Job:
        """The job that answers to `reply`. Raises ServiceError when there is none, or it is not taken."""
        fields, target = order.fields(body), order.target
        model = target.model or _text(fields, "model_name") or self.only_model
        if model is None:
            raise BadRequest("Parameter model_name is required.")
        if order.key is not None:
            order.key.check_model(model)
        job = reply.job = Job(id, model, target.version, fields, order.headers, reply, kind=target.kind)
        self._registry.submit(job)
        return job

    async def _describe(self, model: str, call: Call, send: Send) -> int:
        self._registry.find(model)
        headers = [*common_headers(call.id), (b"content-type", b"application/json")]
        await send_whole(send, 200, headers, json_bytes(model_description(model)))
        return 200


async def _answer(job: Job, reply: ReplyBuffer, receive: Receive, send: Send) -> int:
    watch = DisconnectWatch(job.cancel, receive)
    try:
        status, phrase, headers = await reply.head()
        raw, reason = reply_headers(job.id, headers), reason_of(phrase)
        if reply.whole:
            await send_whole(send, status, raw, (await reply.take())[0], reason)
        else:
            watch.start()
            await send(start_message(status, [*raw, (b"ts_stream_next", b"true")], reason))
            await _stream(send, reply)
        return status
    except ServiceError as error:
        if not job.cancelled or error.status != 499:
            await send_error(send, error, job.id)
        return error.status
    finally:
        watch.stop()
        reply.close()


async def _stream(send: Send, reply: ReplyBuffer) -> None:
    try:
        async for data in reply:
            await send({"type": "http.response.body", "body": data, "more_body": True})
    except ServiceError as error:
        raise StreamBroken(error) from None
    await send({"type": "http.response.body", "body": b""})


def _with_query(parse: Callable[[bytes], list[Field]], query: bytes, body: bytes) -> list[Field]:
    return merge_fields(parse(body), fields_of_query(query))


def _text(fields: list[Field], name: str) -> str | None:
    return next((field.data.decode("utf-8", "replace") for field in fields if field.name == name), None)
