"""Calls that a coroutine answers."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from msx_core.service_errors import RequestCancelled
from msx_net.grpc.codes import Code
from msx_net.grpc.context import CallContext
from msx_net.grpc.direct.framing import framed
from msx_net.grpc.unary_reply import ResponseTooLarge
from tests.net.grpc.direct.fakes import LIMIT, FakeService, FakeStream, Peer, error, take


def with_peer(test: Callable[[Peer, FakeService], Awaitable[None]]) -> None:
    async def main() -> None:
        service = FakeService()
        peer = Peer(service)
        await asyncio.wait_for(test(peer, service), 120)
        await peer.calls.stop()
        assert not peer.calls.open

    asyncio.run(main())


async def ended(stream: FakeStream) -> tuple[int, str]:
    await stream.ended.wait()
    return stream.status


def compressed(data: bytes, size: int | None = None) -> bytes:
    return b"\1%b%b" % ((len(data) if size is None else size).to_bytes(4, "big"), data)


# -- unary --


def test_a_unary_call() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        stream = peer.ask("Unary", b"in")
        assert await ended(stream) == (0, "")
        assert stream.messages == [b"in"]
        assert service.access_log.lines.get_nowait()[1] == 0

    with_peer(test)


def test_what_its_method_knows() -> None:
    async def script(request: bytes, context: CallContext) -> bytes:
        assert context.deadline is not None
        assert 0 < context.deadline - time.monotonic() <= 100
        return context.admitted.id.encode()

    async def test(peer: Peer, service: FakeService) -> None:
        service.script = script
        stream = peer.ask("Unary", b"in", headers=((b"x-request-id", b"mine"), (b"grpc-timeout", b"100S")))
        assert await ended(stream) == (0, "")
        assert stream.messages == [b"mine"]
        assert stream.trailers["x-request-id"] == "mine"
        assert service.access_log.lines.get_nowait()[0].id == "mine"

    with_peer(test)


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (error(), (Code.INVALID_ARGUMENT, "No.")),
        (OSError("Lost."), (Code.INTERNAL, "Internal error: OSError: Lost.")),
    ],
)
@pytest.mark.parametrize("method", ["Unary", "ServerStream"])
def test_a_method_that_raises(raised: Exception, status: tuple[int, str], method: str) -> None:
    async def script(request: bytes, context: CallContext) -> bytes:
        raise raised

    async def test(peer: Peer, service: FakeService) -> None:
        service.script = script
        stream = peer.ask(method, b"in")
        assert await ended(stream) == status
        assert not stream.body

    with_peer(test)


def test_a_response_that_is_too_large() -> None:
    async def script(request: bytes, context: CallContext) -> bytes:
        return bytes(LIMIT + 1)

    async def test(peer: Peer, service: FakeService) -> None:
        service.script = script
        code, message = await ended(peer.ask("Unary", b"in"))
        assert code == Code.RESOURCE_EXHAUSTED
        assert "max_response_size" in message

    with_peer(test)


def waits() -> tuple[asyncio.Event, asyncio.Event, Callable[[Any, CallContext], Any]]:
    """A script that never ends, and when it began and was cancelled."""
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def script(request: Any, context: CallContext) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    return began, cancelled, script


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "Conversation"])
def test_a_client_that_leaves(method: str) -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        began, cancelled, service.script = waits()
        stream = peer.ask(method, b"in")
        await began.wait()
        assert stream.events is not None
        stream.events.lost("gone")
        await cancelled.wait()
        assert not stream.ended.is_set()
        assert service.access_log.lines.get_nowait()[1] == Code.CANCELLED

    with_peer(test)


@pytest.mark.parametrize("method", ["Unary", "ServerStream", "Conversation"])
def test_a_deadline_that_passes(method: str) -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        _, cancelled, service.script = waits()
        stream = peer.ask(method, b"in", headers=((b"grpc-timeout", b"50m"),))
        assert await ended(stream) == (Code.DEADLINE_EXCEEDED, "Deadline Exceeded")
        await cancelled.wait()
        assert service.access_log.lines.get_nowait()[1] == Code.DEADLINE_EXCEEDED

    with_peer(test)


def test_the_end_of_the_server() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        began, cancelled, service.script = waits()
        stream = peer.ask("Unary", b"in")
        await began.wait()
        await peer.calls.stop()
        assert cancelled.is_set()
        assert stream.status[0] == Code.UNAVAILABLE

    with_peer(test)


# -- compressed requests --


@pytest.mark.parametrize(("encoding", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
@pytest.mark.parametrize("method", ["Job", "Unary"])
def test_a_compressed_request(encoding: bytes, pack: Callable[[bytes], bytes], method: str) -> None:
    """Also of a job, whose call then has a task."""

    async def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open(method, (b"grpc-encoding", encoding))
        peer.say(stream, compressed(pack(b"in")))
        peer.end(stream)
        assert await ended(stream) == (0, "")
        assert stream.messages == [b"in"]

    with_peer(test)


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (gzip.compress(bytes(LIMIT + 1)), Code.RESOURCE_EXHAUSTED, "larger than max"),
        (b"nonsense", Code.INTERNAL, "is not gzip data"),
        (gzip.compress(b"in")[:-1], Code.INTERNAL, "is not gzip data: it is cut off"),
    ],
    ids=["too large", "nonsense", "cut off"],
)
def test_a_compressed_request_that_is_refused(data: bytes, code: Code, message: str) -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open("Unary", (b"grpc-encoding", b"gzip"))
        peer.say(stream, compressed(data))
        peer.end(stream)
        assert (await ended(stream))[0] == code
        assert message in stream.status[1]

    with_peer(test)


def test_not_every_message_has_to_be_compressed() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        service.script = take
        stream = peer.open("Conversation", (b"grpc-encoding", b"gzip"))
        peer.say(stream, framed(b"1") + compressed(gzip.compress(b"2")) + framed(b"3"))
        peer.end(stream)
        assert await ended(stream) == (0, "")
        assert stream.messages == [b"1", b"2", b"3"]

    with_peer(test)


# -- streams --


def test_a_stream_of_nothing() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        service.script = take
        stream = peer.ask("Conversation")
        assert await ended(stream) == (0, "")
        assert stream.messages == []
        assert stream.headers[":status"] == "200"

    with_peer(test)


def test_an_error_behind_responses() -> None:
    async def script(request: bytes, context: CallContext) -> None:
        await context.write(b"1")
        raise error()

    async def test(peer: Peer, service: FakeService) -> None:
        service.script = script
        stream = peer.ask("ServerStream", b"in")
        assert (await ended(stream))[0] == Code.INVALID_ARGUMENT
        assert stream.messages == [b"1"]
        assert "grpc-status" not in stream.headers

    with_peer(test)


def test_a_response_of_a_stream_that_is_too_large() -> None:
    async def script(request: bytes, context: CallContext) -> None:
        with pytest.raises(ResponseTooLarge):
            await context.write(bytes(LIMIT + 1))
        await context.write(b"ok")

    async def test(peer: Peer, service: FakeService) -> None:
        service.script = script
        stream = peer.ask("ServerStream", b"in")
        assert await ended(stream) == (0, "")
        assert stream.messages == [b"ok"]

    with_peer(test)


def test_a_writer_waits_for_a_client_who_reads_slowly() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        written: list[bytes] = []

        async def script(request: bytes, context: CallContext) -> None:
            for message in (b"1", b"2"):
                await context.write(message)
                written.append(message)

        service.script = script
        stream = peer.open("ServerStream")
        stream.blocked = True
        peer.say(stream, framed(b"in"))
        peer.end(stream)
        await stream.wrote.wait()
        assert stream.events is not None
        for _ in range(5):
            await asyncio.sleep(0)
        assert written == []
        stream.blocked = False
        stream.events.drained()
        assert await ended(stream) == (0, "")
        assert stream.messages == [b"1", b"2"]

    with_peer(test)


def test_what_is_written_late_is_dropped() -> None:
    late = asyncio.Event()

    async def script(request: bytes, context: CallContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(RequestCancelled):
                await context.write(b"late")
            late.set()

    async def test(peer: Peer, service: FakeService) -> None:
        service.script = script
        stream = peer.ask("ServerStream", b"in", headers=((b"grpc-timeout", b"1m"),))
        assert (await ended(stream))[0] == Code.DEADLINE_EXCEEDED
        await peer.calls.stop()

    with_peer(test)


def test_a_client_gets_no_room_while_its_messages_wait() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        first, go = asyncio.Event(), asyncio.Event()

        async def script(requests: AsyncIterator[bytes], context: CallContext) -> None:
            await anext(requests)
            first.set()
            await go.wait()
            async for _ in requests:
                pass

        service.script = script
        stream = peer.open("Conversation")
        message = framed(b"12345")
        peer.say(stream, message)
        await first.wait()
        assert stream.consumed_bytes == len(message)
        peer.say(stream, message + message[:3])
        assert stream.consumed_bytes == len(message)
        go.set()
        peer.say(stream, message[3:])
        peer.end(stream)
        assert await ended(stream) == (0, "")
        assert stream.consumed_bytes == 3 * len(message)

    with_peer(test)


def test_a_stream_that_ends_in_the_middle_of_a_message() -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        service.script = take
        stream = peer.open("Conversation")
        peer.say(stream, framed(b"1") + framed(b"2")[:-1])
        peer.end(stream)
        assert (await ended(stream))[0] == Code.INTERNAL
        assert stream.messages == [b"1"]

    with_peer(test)


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({"_path": b"/a.Service/Nothing"}, (12, "Method not found!")),
        (
            {"grpc_encoding": b"br"},
            (12, "grpc-encoding 'br' is not supported: send messages as identity, deflate, gzip."),
        ),
    ],
)
def test_a_call_that_cannot_be(other: dict[str, bytes], status: tuple[int, str]) -> None:
    async def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open("Unary", other=other)
        assert stream.status == status
        peer.say(stream, b"what else it says")
        peer.end(stream)

    with_peer(test)


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_what_is_not_a_call(method: bytes) -> None:
    """Its client can read why, and may send the rest of its request."""

    async def test(peer: Peer, service: FakeService) -> None:
        stream = peer.open("Unary", other={"_method": method})
        assert (stream.headers[":status"], stream.headers["content-type"]) == ("405", "text/plain; charset=utf-8")
        assert stream.body == (b"" if method == b"HEAD" else b"This port speaks gRPC: its calls are POST requests.\n")
        assert stream.ended.is_set()
        peer.say(stream, b"what else it says")
        peer.end(stream)

    with_peer(test)
