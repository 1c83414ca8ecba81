"""Clients that leave, stall, flood, or send what is not HTTP. The server may refuse them; it must not suffer."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress

from tests.soak.client import RawClient, head
from tests.soak.http2 import WINDOW, post
from tests.soak.target import Fault, Target, Visit

BURST = 100
CHUNKS = 64
"""Number of chunks, of a mebibyte each: more than sockets hold."""


async def leave_amid_body(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        client.send(head("/predictions/echo", "Content-Length: 100000") + bytes(random.randrange(99_999)))
        await asyncio.sleep(random.random() / 10)
        client.leave(reset=random.random() < 0.5)


async def leave_amid_stream(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        order = json.dumps({"count": 1_000_000, "pause": 0.001}).encode()
        client.post("/predictions/numbers", order, "Content-Type: application/json")
        await client.reader.read(1000)
        client.leave(reset=random.random() < 0.5)


async def read_nothing(target: Target) -> None:
    """Read nothing of a stream that is larger than sockets are."""
    async with await RawClient.connect(target.inference) as client:
        client.post("/predictions/chunks", b"%d" % CHUNKS)
        await asyncio.sleep(random.uniform(0.1, 5))
        client.leave(reset=random.random() < 0.5)


async def read_nothing_over_http2(target: Target) -> None:
    """Half of the clients leave the window closed, the others the socket."""
    async with await RawClient.connect(target.inference) as client:
        window = random.choice([0, WINDOW])
        client.send(post("/predictions/chunks", b"%d" % CHUNKS, "text/plain", window))
        await asyncio.sleep(random.uniform(0.1, 5))
        client.leave(reset=random.random() < 0.5)


async def leave_replies_unread(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        for _ in range(CHUNKS):
            client.post("/predictions/big", b"%d" % (1 << 20))
        await asyncio.sleep(random.uniform(0.1, 5))
        client.leave(reset=random.random() < 0.5)


async def stop_amid_head(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        client.send(head("/predictions/echo", "Content-Length: 4")[: random.randrange(60)])
        answer = await client.until_closed()
        if answer and not answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400")):
            raise Fault(f"half a head was answered with {answer[:200]!r}")


async def stop_amid_body(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        client.send(head("/predictions/echo", "Content-Length: 100") + b"x")
        answer = await client.until_closed()
        if answer and not answer.startswith(b"HTTP/1.1 408"):
            raise Fault(f"half a body was answered with {answer[:200]!r}")


async def say_nothing(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        if answer := await client.until_closed():
            raise Fault(f"a client that said nothing was answered with {answer[:200]!r}")


async def send_huge_head(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        with suppress(ConnectionError):
            client.send(head("/predictions/echo", "X-Large: " + "x" * (1 << 20)))
            await client.sent()
        answer = await client.until_closed()
        if answer and not answer.startswith(b"HTTP/1.1 431"):
            raise Fault(f"a head of a mebibyte was answered with {answer[:200]!r}")


async def send_huge_body(target: Target) -> None:
    async with await RawClient.connect(target.inference) as client:
        client.post("/predictions/echo", bytes(8 << 20))
        if (reply := await client.reply()).status != 413:
            raise Fault(f"a body that is too large was answered with {reply.status}")


async def send_garbage(target: Target) -> None:
    address = random.choice([target.inference, target.grpc])
    async with await RawClient.connect(address) as client:
        client.send(random.randbytes(random.randrange(1, 5000)))
        await client.until_closed()


async def connect_and_leave(target: Target) -> None:
    clients = await asyncio.gather(*(RawClient.connect(target.inference) for _ in range(BURST)), return_exceptions=True)
    for client in clients:
        if isinstance(client, RawClient):
            client.leave(reset=random.random() < 0.5)


STRANGERS: tuple[Visit, ...] = (
    leave_amid_body,
    leave_amid_stream,
    read_nothing,
    read_nothing_over_http2,
    leave_replies_unread,
    stop_amid_head,
    stop_amid_body,
    say_nothing,
    send_huge_head,
    send_huge_body,
    send_garbage,
    connect_and_leave,
)
