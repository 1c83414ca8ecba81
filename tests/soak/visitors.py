"""Well-behaved clients: what they get must be right whatever others do."""

from __future__ import annotations

import asyncio
import json
import random

from tests.raw_grpc import RawCall, framed
from tests.soak.client import RawClient, Reply, head
from tests.soak.http2 import post, reply_to
from tests.soak.target import Fault, Target, Visit

ANSWERED = (200, 503, 507)
"""503: the queue is full. 507: the worker was killed."""

LARGEST_BODY = 1 << 16
REQUESTS = 20
PIPELINED = 5
NUMBERS = 200
UPLOADED = 8


async def predict(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        for _ in range(REQUESTS):
            body = random.randbytes(random.randrange(LARGEST_BODY))
            client.post("/predictions/echo", body)
            if not _echoed(await client.reply(), body):
                return


async def pipeline(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        bodies = [b"%d" % number for number in range(PIPELINED)]
        for body in bodies:
            client.post("/predictions/echo", body)
        for body in bodies:
            if not _echoed(await client.reply(), body):
                return


async def upload(target: Target) -> None:
    """A chunked body in pieces."""
    async with await RawClient.connect(target.inference) as client:
        client.send(head("/predictions/echo", "Transfer-Encoding: chunked"))
        pieces = [random.randbytes(random.randrange(1, 4096)) for _ in range(UPLOADED)]
        for piece in pieces:
            client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(0.01)
        client.send(b"0\r\n\r\n")
        _echoed(await client.reply(), b"".join(pieces))


async def read_stream(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        client.post("/predictions/numbers", json.dumps({"count": NUMBERS}).encode(), "Content-Type: application/json")
        _counted(await client.reply())


async def predict_over_http2(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        body = random.randbytes(random.randrange(LARGEST_BODY))
        client.send(post("/predictions/echo", body, "application/octet-stream"))
        reply = await reply_to(client)
        if reply.whole:
            _echoed(reply, body)


async def read_stream_over_http2(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        client.send(post("/predictions/numbers", json.dumps({"count": NUMBERS}).encode(), "application/json"))
        reply = await reply_to(client)
        if reply.status:
            _counted(reply)


async def ask_health(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        for path in ("/ping", "/livez", "/v2/health/live"):
            client.send(head(path, method="GET"))
            if (reply := await client.reply()).status != 200:
                raise Fault(f"{path} was answered with {reply.status}: {reply.body[:200]!r}")


async def call_grpc(target: Target) -> None:
    path = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"
    call = await RawCall.begin(random.choice([target.grpc, target.inference.rpartition("/")[2]]), path)
    call.write(framed(_predictions_request("echo", b"soak")))
    answer = await call.answer()
    if dict(answer.trailers).get("grpc-status") not in ("0", "8", "13", "14"):
        raise Fault(f"a call was answered with {answer}")


def _predictions_request(model: str, data: bytes) -> bytes:
    from msx_net.grpc.messages import message_class

    request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
    encoded: bytes = request(model_name=model, input={"body": data}).SerializeToString()
    return encoded


def _counted(reply: Reply) -> None:
    """Raises Fault."""
    expected = "".join(f"{number}\n" for number in range(1, NUMBERS + 1)).encode()
    if reply.status not in ANSWERED:
        raise Fault(f"a stream was answered with {reply.status}: {reply.body[:200]!r}")
    if reply.status == 200 and reply.whole and reply.body != expected:
        raise Fault(f"a stream ended as if it were whole after {len(reply.body)} of {len(expected)} bytes")


def _echoed(reply: Reply, body: bytes) -> bool:
    """False where the connection ends with an error that is allowed. Raises Fault."""
    if reply.status not in ANSWERED:
        raise Fault(f"a prediction was answered with {reply.status}: {reply.body[:200]!r}")
    if reply.status == 200 and reply.body != body:
        raise Fault(f"an echo of {len(body)} bytes has {len(reply.body)}, or others")
    return reply.status == 200


VISITORS: tuple[Visit, ...] = (
    predict,
    pipeline,
    upload,
    read_stream,
    ask_health,
    predict_over_http2,
    read_stream_over_http2,
    call_grpc,
)
