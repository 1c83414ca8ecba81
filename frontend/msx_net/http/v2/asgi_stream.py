"""One request that the ASGI app answers: what it receives of its stream, and what it sends."""

from __future__ import annotations

from collections.abc import Callable

from msx_core.replies.notifier import Notifier
from msx_core.service_errors import SlowRequest
from msx_net.http.app import AsgiApp, run_app
from msx_net.http.v2.blocks import CONTINUE, reply_block
from msx_net.http.v2.cut_stream import CutStream
from msx_net.http.wire import BODYLESS, Message, Scope
from msx_net.http2.stream import Stream

BROKEN = reply_block(500, [(b"content-type", b"text/plain; charset=utf-8")]), b"Internal Server Error"


class AsgiStream:
    """Its owner: `run` is a task. The client sends as fast as the app takes it, and the other way round."""

    def __init__(self, stream: Stream, scope: Scope, *, ended: bool, expects_continue: bool) -> None:
        """`ended`: the request has no body."""
        self._stream, self._scope = stream, scope
        self._parts: list[bytes] = []
        self._ended, self._taken = ended, False
        """The client has said all, and the app has taken it."""
        self._continue = expects_continue and not ended
        self._started = self._complete = self._left = False
        self._tell_left: Callable[[], None] | None = None
        self._slow = ""
        """Why the body comes too slowly to wait for."""
        self._changed, self._drained = Notifier(), Notifier()

    # -- what the stream says --

    def data(self, data: bytes) -> None:
        self._parts.append(data)
        self._changed.notify()

    def ended(self) -> None:
        self._ended = True
        self._changed.notify()

    def lost(self, reason: str) -> None:
        self._left = True
        self._changed.notify()
        self._drained.notify()
        if self._tell_left is not None:
            self._tell_left()

    def drained(self) -> None:
        self._drained.notify()

    def too_slow(self, reason: str) -> None:
        self._slow = reason
        self._changed.notify()

    # -- the app --

    async def run(self, app: AsgiApp) -> None:
        """A reply that the app does not finish breaks off: no client takes the part for the whole."""
        try:
            await run_app(app, self._scope, self)
        finally:
            self._finish()

    @property
    def over(self) -> bool:
        return self._complete or self._left

    def when_left(self, tell: Callable[[], None]) -> None:
        self._tell_left = tell
        if self._left:
            tell()

    def _finish(self) -> None:
        if self._stream.finished:
            self._stream.events = None  # ends the reference cycle of the two
        elif self._started:
            self._stream.events = CutStream(self._stream)
        else:
            self._stream.send_whole(*BROKEN)
            self._stream.events = None

    async def receive(self) -> Message:
        """A part of the body, then `http.disconnect` once the client has left or the reply is complete.

        Raises SlowRequest.
        """
        if self._continue and not self._parts:
            self._stream.send_headers(CONTINUE)
        self._continue = False
        while not (self._left or self._complete):
            if self._parts or (self._ended and not self._taken):
                return self._take()
            if self._slow:
                raise SlowRequest(self._slow)
            await self._changed.wait()
        return {"type": "http.disconnect"}

    def _take(self) -> Message:
        body, self._parts = b"".join(self._parts), []
        self._taken = self._ended
        self._stream.consumed(len(body))
        return {"type": "http.request", "body": body, "more_body": not self._ended}

    async def send(self, message: Message) -> None:
        """Waits for a client that reads slowly. Raises RuntimeError for what is not a reply of ASGI."""
        while self._stream.blocked and not self._left:
            await self._drained.wait()
        expected = "http.response.body" if self._started else "http.response.start"
        if self._complete or message["type"] != expected:
            due = "nothing" if self._complete else expected
            raise RuntimeError(f"{message['type']} came where {due} was due.")
        if not self._started:
            self._start(message)
        else:
            self._go_on(message.get("body", b""), last=not message.get("more_body", False))

    def _start(self, message: Message) -> None:
        self._started, self._continue = True, False
        bodyless = message["status"] in BODYLESS or self._scope["method"] == "HEAD"
        self._stream.send_headers(reply_block(message["status"], message.get("headers", ())), end=bodyless)

    def _go_on(self, data: bytes, *, last: bool) -> None:
        """Does nothing where the reply has no body, or the client has left."""
        self._stream.send_data(data, end=last)
        if last:
            self._complete = True
            self._changed.notify()
