"""A stream that writes down what is sent, and a service whose methods the test answers itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, cast

from hpack import Decoder

from msx_core.held_bytes import HeldBytes
from msx_core.replies.sink import Sink
from msx_core.service_errors import BadRequest, RequestCancelled, ServiceError
from msx_net.grpc.admission import Admission, ChecksTokens
from msx_net.grpc.context import CallContext
from msx_net.grpc.direct.call_connection import CallConnection
from msx_net.grpc.direct.framing import framed
from msx_net.grpc.direct.open_calls import OpenCalls
from msx_net.grpc.served import served_methods
from msx_net.grpc.service import JobMethod, Method, Service
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.headers import Headers
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents
from tests.net.grpc.access_log import AccessLog

LIMIT = 100
SERVICE = "a.Service"


def fields(block: bytes) -> dict[str, str]:
    return {str(name): str(value) for name, value in Decoder().decode(block)}


class FakeStream:
    def __init__(self) -> None:
        self.events: StreamEvents | None = None
        self.blocked = False
        self.consumed_bytes = 0
        self.headers: dict[str, str] = {}
        self.trailers: dict[str, str] = {}
        self.body = b""
        self.ended = asyncio.Event()
        self.wrote = asyncio.Event()

    def send_headers(self, block: bytes, *, end: bool = False) -> None:
        assert not self.headers
        self.headers = fields(block)
        if end:
            self._end()

    def send_data(self, data: bytes) -> None:
        assert self.headers
        assert not self.ended.is_set()
        self.body += data
        self.wrote.set()

    def send_trailers(self, block: bytes) -> None:
        assert self.headers
        self.trailers = fields(block)
        self._end()

    def send_whole(self, headers: bytes, data: bytes, trailers: bytes = b"") -> None:
        self.send_headers(headers)
        self.send_data(data)
        if trailers:
            self.send_trailers(trailers)
        else:
            self._end()

    def consumed(self, size: int) -> None:
        self.consumed_bytes += size

    def _end(self) -> None:
        assert not self.ended.is_set()
        self.ended.set()

    @property
    def status(self) -> tuple[int, str]:
        """gRPC's, as the client has it."""
        said = self.trailers or self.headers
        return int(said["grpc-status"]), said.get("grpc-message", "")

    @property
    def messages(self) -> list[bytes]:
        found, rest = [], self.body
        while rest:
            size = int.from_bytes(rest[1:5], "big")
            found.append(rest[5 : 5 + size])
            rest = rest[5 + size :]
        return found


class FakeJob:
    """Job that the service makes of a request; the test answers it."""

    credit = None

    def __init__(self, id: str, request: bytes, deadline: float | None, sink: Sink) -> None:
        self.id, self.request, self.deadline, self.sink = id, request, deadline, sink
        self.done = self.cancelled = False

    def answer(self, status: int, phrase: str, headers: list[tuple[str, str]], data: bytes) -> None:
        self.done = True
        self.sink.answer(status, phrase, headers, data)

    def finish(self, status: int) -> None:
        self.done = True
        self.sink.end()

    def fail(self, error: ServiceError) -> None:
        if not self.done:
            self.done = True
            self.sink.fail(error)

    def cancel(self, error: ServiceError | None = None) -> None:
        if not self.done:
            self.cancelled = True
            self.fail(error or RequestCancelled())


class FakeService:
    """Messages are bytes. `Job` answers by a job, the others by what `script` says."""

    def __init__(self, tokens: ChecksTokens | None = None) -> None:
        self.admission = Admission(tokens)
        self.access_log = AccessLog()
        self.jobs: list[FakeJob] = []
        self.refusal: Exception | None = None
        self.response: Callable[[bytes], Any] = bytes
        self.script: Callable[[Any, CallContext], Coroutine[Any, Any, Any]] = _echo

    def service(self) -> Service:
        job = JobMethod(submit=self._submit, response=self.response, limit=LIMIT, held=HeldBytes())
        methods = (
            Method(SERVICE, "Job", False, False, _parse, bytes, self._play, job, model="model_name"),
            Method(SERVICE, "Unary", False, False, _parse, bytes, self._play),
            Method(SERVICE, "ServerStream", False, True, _parse, bytes, self._play),
            Method(SERVICE, "Conversation", True, True, _parse, bytes, self._play),
        )
        return Service(SERVICE, methods, access_log=self.access_log)

    async def _play(self, request: Any, context: CallContext) -> Any:
        return await self.script(request, context)

    def _submit(self, request: Any, id: str, deadline: float | None, sink: Sink) -> FakeJob:
        if self.refusal is not None:
            raise self.refusal
        self.jobs.append(FakeJob(id, request, deadline, sink))
        return self.jobs[-1]


def _parse(data: bytes) -> bytes:
    if data.startswith(b"?"):
        raise ValueError("Error parsing message")
    return data


async def _echo(request: bytes, context: CallContext) -> bytes:
    return request


class Peer:
    """One connection, by its side of the calls."""

    def __init__(self, service: FakeService) -> None:
        self.calls = OpenCalls(LIMIT)
        served = served_methods([service.service()], service.admission, LIMIT)
        self.connection = CallConnection({f"/{one.target}".encode(): one for one in served}, self.calls)
        self.connection.protocol = cast(Http2Protocol, _Protocol())

    def open(
        self,
        method: str,
        *headers: tuple[bytes, bytes],
        ended: bool = False,
        other: Mapping[str, bytes] = MappingProxyType({}),
    ) -> FakeStream:
        """`other` replaces headers that every call has; dashes are underscores, and `_name` is a pseudo-header."""
        stream = FakeStream()
        known = {"_method": b"POST", "_path": f"/{SERVICE}/{method}".encode(), "content_type": b"application/grpc"}
        usual = [(_name(name), value) for name, value in {**known, **other}.items()]
        sent: Headers = [*usual, (b"te", b"trailers"), *headers]
        stream.events = self.connection.accept(cast(Stream, stream), sent, ended)
        return stream

    def ask(self, method: str, *messages: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> FakeStream:
        """All that the client says in this call."""
        stream = self.open(method, *headers)
        for message in messages:
            self.say(stream, framed(message))
        self.end(stream)
        return stream

    def say(self, stream: FakeStream, data: bytes) -> None:
        if stream.events is not None:
            stream.events.data(data)

    def end(self, stream: FakeStream) -> None:
        if stream.events is not None:
            stream.events.ended()


class _Protocol:
    peer, own = ("127.0.0.1", 5), ("127.0.0.1", 7070)


def _name(name: str) -> bytes:
    return name.replace("_", ":", 1).encode() if name.startswith("_") else name.replace("_", "-").encode()


async def take(requests: AsyncIterator[bytes], context: CallContext) -> None:
    """A script: echoes every request of a stream."""
    async for request in requests:
        await context.write(request)


def error() -> ServiceError:
    return BadRequest("No.")
