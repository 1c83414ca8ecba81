"""One request that an ASGI app answers: what it receives, and what it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from msx_core.service_errors import ServiceError
from msx_net.http.app import AsgiApp, run_app
from msx_net.http.v1.close_delimited import end_reply, open_reply
from msx_net.http.v1.flow_control import TransportFlow
from msx_net.http.v1.incoming import IncomingRequest
from msx_net.http.v1.server import ServerState
from msx_net.http.wire import BODYLESS, CHUNKED, CONTINUE, Message, Scope, head_bytes, is_header

HELD = 1 << 16
"""Bytes of a body that the app has not taken; above that the connection is not read."""


class AsgiConnection(Protocol):
    transport: asyncio.Transport
    flow: TransportFlow
    server_state: ServerState

    def completed(self, reply: AsgiCycle) -> None: ...

    def tell(self, error: ServiceError) -> None: ...

    @property
    def must_close(self) -> bool: ...


class AsgiCycle:
    def __init__(self, connection: AsgiConnection, request: IncomingRequest) -> None:
        self._connection, self._request = connection, request
        self.keep_alive = request.keeps_alive
        self.response_complete = False
        self._left = False
        self._tell_left: Callable[[], None] | None = None
        self._started = False
        self._changed = asyncio.Event()
        """The body, or the connection, has something new."""
        self._waits = request.expects_continue
        self._body_taken = False
        self._chunked = self._bodyless = self._close_delimited = False
        self._owed: int | None = None
        """Bytes that the app still owes of the content-length that it announced."""

    def start(self, app: AsgiApp, scope: Scope) -> None:
        """Run the app in a task of its own."""
        task, tasks = asyncio.get_running_loop().create_task(self.run(app, scope)), self._connection.server_state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        """A reply that the app does not finish ends with the connection: no client takes the part for the whole."""
        try:
            await run_app(app, scope, self)
        finally:
            await self._finish()

    @property
    def over(self) -> bool:
        return self.response_complete or self._left

    @property
    def promises_more(self) -> bool:
        """Its head has told the client that the connection goes on."""
        return self._started and self.keep_alive

    async def _finish(self) -> None:
        if self.over:
            return
        if self._started:
            self.cut()
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
            body = b"Internal Server Error"
            headers.append((b"content-length", b"%d" % len(body)))
            await self.send({"type": "http.response.start", "status": 500, "headers": headers})
            await self.send({"type": "http.response.body", "body": body})

    # -- what the connection calls --

    def body_came(self, request: IncomingRequest) -> None:
        if self.response_complete:
            request.take()
        elif request.held > HELD:
            self._connection.flow.pause_reading()
        self._changed.set()

    def request_complete(self, request: IncomingRequest) -> None:
        self._changed.set()

    def leave(self) -> None:
        """The client has left."""
        self._left = True
        self._changed.set()
        if self._tell_left is not None:
            self._tell_left()

    def flush(self) -> None:
        """TransportFlow wakes the app."""

    def refuse(self, error: ServiceError) -> None:
        """The body cannot be read."""
        if self._started:
            self.cut()
        else:
            self._connection.tell(error)
        self.leave()

    def cut(self) -> None:
        """End the connection, so that the reply does not look complete."""
        self.keep_alive = False
        transport = self._connection.transport
        if self._chunked or self._owed:
            transport.close()
        else:
            transport.abort()
        self._complete()

    # -- what the app calls --

    def when_left(self, tell: Callable[[], None]) -> None:
        self._tell_left = tell
        if self._left:
            tell()

    async def receive(self) -> Message:
        """A part of the body, then `http.disconnect` once the client has left or the reply is complete."""
        request = self._request
        if self._waits:
            self._waits = request.expects_continue = False
            self._connection.transport.write(CONTINUE)
        while not (self._left or self.response_complete):
            if request.held or (request.complete and not self._body_taken):
                self._body_taken = request.complete
                return {"type": "http.request", "body": request.take(), "more_body": not request.complete}
            if not request.complete:
                self._connection.flow.resume_reading()
            self._changed.clear()
            await self._changed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Waits for a client that reads slowly. Raises RuntimeError for what is not a reply of ASGI."""
        if self.response_complete:
            raise RuntimeError(f"{message['type']} came after the end of the reply.")
        if self._connection.flow.write_paused and not self._left:
            await self._connection.flow.drain()
        if self._left:
            return
        expected = "http.response.body" if self._started else "http.response.start"
        if message["type"] != expected:
            raise RuntimeError(f"{message['type']} came where {expected} was due.")
        if self._started:
            self._write_body(message.get("body", b""), last=not message.get("more_body", False))
        else:
            self._write_head(message["status"], message.get("headers", []))

    # -- the reply --

    def _write_head(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        connection, own = self._connection, []
        self._bodyless = status in BODYLESS or self._request.method == b"HEAD"
        for name, value in headers:
            if not is_header(name, value):
                raise RuntimeError(f"HTTP does not allow the header {name!r}.")
            name = name.lower()
            if name == b"content-length":
                self._owed = int(value)
            if name == b"connection":
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
            elif name != b"transfer-encoding":
                own.append((name, value))
        self._started, self._waits = True, False
        self._chunked = self._owed is None and not self._bodyless and self._request.version != "1.0"
        self._close_delimited = self._owed is None and not self._bodyless and not self._chunked
        if self._close_delimited:
            open_reply(connection.transport)
        self.keep_alive = self.keep_alive and not connection.must_close
        framing = [CHUNKED] if self._chunked else []
        framing.append((b"connection", b"keep-alive" if self.keep_alive else b"close"))
        connection.transport.write(head_bytes(status, [*connection.server_state.default_headers, *own, *framing]))

    def _write_body(self, data: bytes, *, last: bool) -> None:
        if not self._bodyless:
            self._owe(len(data), last=last)
            if self._chunked:
                data = _chunk(data, last=last)
            if data:
                self._connection.transport.write(data)
        if last:
            if self._close_delimited:
                end_reply(self._connection.transport)
            self._complete()

    def _owe(self, size: int, *, last: bool) -> None:
        if self._owed is None:
            return
        self._owed -= size
        if self._owed < 0 or (last and self._owed):
            raise RuntimeError("The body of the reply is not as long as its content-length says.")

    def _complete(self) -> None:
        self.response_complete = True
        self._changed.set()
        self._connection.completed(self)


def _chunk(data: bytes, *, last: bool) -> bytes:
    framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
    return framed + b"0\r\n\r\n" if last else framed
