"""One connection of HTTP/1.1: its requests in their order, jobs answered directly and the rest by the ASGI app."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from msx_frontend.errors import ServiceError
from msx_frontend.held_bytes import Hold
from msx_frontend.ids import new_request_id
from msx_frontend.net.http.asgi_request import client_text
from msx_frontend.net.http.job_reply import begin
from msx_frontend.net.http.response_head import CLOSE
from msx_frontend.net.http.v1.asgi_cycle import AsgiCycle
from msx_frontend.net.http.v1.asgi_scope import endpoints, scope_of
from msx_frontend.net.http.v1.direct_reply import Http1Reply
from msx_frontend.net.http.v1.flow_control import FlowControl
from msx_frontend.net.http.v1.incoming import IncomingRequest, unreadable
from msx_frontend.net.http.v1.kept_head import KeptHead
from msx_frontend.net.http.v1.reader import RequestReader
from msx_frontend.net.http.v1.server import AppConfig, ServerState
from msx_frontend.net.http.v1.settings import Http1Settings
from msx_frontend.net.http.v1.usual_head import UsualHead
from msx_frontend.net.http.wire import CONTINUE, common_headers, error_bytes, head_bytes

log = logging.getLogger("msx.http")


class Http1Connection(asyncio.Protocol):
    """A connection (net/connections/connection.py), and a protocol of uvicorn's (`server.py`).

    One request is answered at a time. Those behind it wait, read or not: nothing overtakes.
    """

    transport: asyncio.Transport
    flow: FlowControl
    usual: UsualHead
    """Makes the head of an ordinary reply to the request that is answered."""

    def __init__(
        self,
        settings: Http1Settings,
        *,
        config: AppConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self._settings, self._direct = settings, settings.direct
        self._app, self._app_state, self.server_state = config.loaded_app, app_state, server_state
        self.loop = _loop or asyncio.get_running_loop()
        self._reader = RequestReader(self)
        self._kept: KeptHead | None = None
        self._waiting: deque[IncomingRequest] = deque()
        """Requests behind the one that is answered."""
        self._answering: IncomingRequest | None = None
        """The last request that is answered, or was; None before the first one."""
        self._reply: Http1Reply | AsgiCycle | None = None
        """To that request; None if nothing is under way."""
        self._hold: Hold | None = None
        """Counts the bytes of a large body; made when the first one comes."""
        self._ending = False
        """The reply to the last request that has come ends the connection."""
        self._deaf = False
        """What comes is not read any more."""
        self._idle_since = 0.0

    # -- the transport --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport, self.flow = transport, FlowControl(transport)
        self._ends = endpoints(transport)
        self._client = client_text(self._ends.client)
        self._idle_since = self.loop.time()
        self.server_state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self._deaf = True
        self._waiting.clear()
        if self._reply is not None:
            self._reply.leave()
        self.flow.resume_writing()
        self._reader.close()
        self._reply = self._answering = self._kept = None

    def pause_writing(self) -> None:
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        if self._reply is not None:
            self._reply.flush()

    def data_received(self, data: bytes) -> None:
        """A request whose head is the last one's, word for word, needs no parser."""
        kept = self._kept
        if (
            kept is not None
            and kept.size == len(data)
            and self._reply is None
            and self._reader.request is None
            and data.startswith(kept.raw)
        ):
            reply = self._begin(kept)
            if kept.is_large:
                self.hold(reply, kept.size)
            if not reply.response_complete:
                begin(kept.known.template, reply.id, data[len(kept.raw) :], reply)
        elif not self._deaf:
            self._read(data)

    def _read(self, data: bytes) -> None:
        reader = self._reader
        between, begun = reader.request is None, reader.begun
        try:
            reader.feed(data)
        except ServiceError as error:
            self._cannot_read(error)
        else:
            if between and reader.request is None and reader.begun == begun + 1:
                self._keep(data)

    def _keep(self, data: bytes) -> None:
        """`data` is one request. It may also wait its turn, or be one for the app: then its head is not known."""
        if self._kept is not None and self._answering is self._reader.last and not self._ending:
            self._kept.keep(data)

    def _cannot_read(self, error: ServiceError) -> None:
        """No request can be found behind what was wrong: this reply is the last, in its turn."""
        log.info("%s sent bytes that are not HTTP", self._client)
        self._deaf = True
        if self._reply is None:
            self.tell(error)
        elif self._reader.request is self._answering:
            self._reply.refuse(error)
        else:
            self._waiting.append(unreadable(error))

    # -- requests, as the reader finds them --

    def request_begun(self, request: IncomingRequest) -> None:
        if self._deaf:
            return  # a client that sent more requests behind the one that ended the connection must repeat them
        if self._reply is None:
            self._start(request)
        else:
            self._waiting.append(request)
            self.flow.pause_reading()

    def body_came(self, request: IncomingRequest) -> None:
        if self._reply is not None and request is self._answering:
            self._reply.body_came(request)

    def request_complete(self, request: IncomingRequest) -> None:
        self._deaf = self._deaf or not request.keeps_alive
        if self._reply is not None and request is self._answering:
            self._reply.request_complete(request)

    # -- their replies, one behind the other --

    def _start(self, request: IncomingRequest) -> None:
        self._answering = request
        if request.error is not None:
            self.tell(request.error)
        elif (kept := self._known_head(request)) is None:
            self._start_app(request)
        else:
            self._start_job(request, self._begin(kept))

    def _start_job(self, request: IncomingRequest, reply: Http1Reply) -> None:
        if reply.response_complete:
            return
        if self._ending and not self._waiting:
            reply.keep_alive = False
        if request.expects_continue and not request.complete:
            self.transport.write(CONTINUE)
        if request.size:
            reply.body_came(request)
        if request.complete:
            reply.request_complete(request)

    def _start_app(self, request: IncomingRequest) -> None:
        try:
            scope = scope_of(request, self._ends, self._app_state)
        except ServiceError as error:
            self.tell(error)
            return
        cycle = self._reply = AsgiCycle(self, request)
        task = self.loop.create_task(cycle.run(self._app, scope))
        self.server_state.tasks.add(task)
        task.add_done_callback(self.server_state.tasks.discard)

    def _known_head(self, request: IncomingRequest) -> KeptHead | None:
        """What is known of this head, if it can be answered directly."""
        direct, last = self._direct, self._kept
        if direct is None or (last is not None and last.fits(request)):
            return last
        known = direct.know(request.method, request.url, request.headers, self._client, request.version)
        if known is None:
            self._kept = None
        else:
            same = last is not None and last.known.cors is known.cors
            usual = last.usual if last is not None and same else self._settings.usual(known)
            self._kept = KeptHead(request, known, usual)
        return self._kept

    def _begin(self, kept: KeptHead) -> Http1Reply:
        assert self._direct is not None
        known, self.usual = kept.known, kept.usual
        reply = self._reply = Http1Reply(self, self._direct, known)
        if known.checked:
            try:
                self._direct.check(known)
            except ServiceError as error:
                reply.refuse(error)
        return reply

    def hold(self, reply: Http1Reply, size: int) -> None:
        """Count the bytes of its request until it is answered."""
        if reply.response_complete:
            return
        if self._hold is None:
            assert self._direct is not None
            self._hold = self._direct.held.hold()
        try:
            self._hold.resize(size)
        except ServiceError as error:
            reply.refuse(error)

    def answered(self, reply: Http1Reply) -> None:
        """As usual: nothing is to be done but to wait for the next request, unless one waits already."""
        reply.direct.answered(reply)
        if self._hold is not None:
            self._hold.release()
        if self._waiting or self.flow.read_paused:
            self.completed(reply)
        else:
            self._reply = None
            self.server_state.total_requests += 1
            self._idle_since = self.loop.time()

    def completed(self, reply: Http1Reply | AsgiCycle) -> None:
        if self._hold is not None:
            self._hold.release()
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if not reply.keep_alive:
            self._close()
        elif self._waiting:
            self.loop.call_soon(self._next)  # not at once: a thousand that are refused would be as many frames deep
        elif self._deaf:
            self._close()
        else:
            self._reply = None
            self.flow.resume_reading()

    def _next(self) -> None:
        if self._waiting:
            request = self._waiting.popleft()
            if not self._waiting:
                self.flow.resume_reading()
            self._start(request)

    # -- its end --

    @property
    def must_close(self) -> bool:
        """The reply whose head is about to be written is the last one."""
        request = self._answering
        unread = request is not None and request.has_body and not request.complete
        return unread or (self._ending and not self._waiting)

    def tell(self, error: ServiceError) -> None:
        """Answer what is not a request, as TorchServe does, and close."""
        body = error_bytes(error)
        framing = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), CLOSE]
        headers = [*self.server_state.default_headers, *common_headers(new_request_id()), *framing]
        self.transport.write(head_bytes(error.status, headers) + body)
        self._close()

    def _close(self) -> None:
        self._deaf, self._reply = True, None
        self._waiting.clear()
        self.transport.close()

    # -- what its listener calls --

    @property
    def idle_since(self) -> float | None:
        return self._idle_since if self._reply is None and self._reader.request is None else None

    def look(self, now: float) -> None:
        since = self.idle_since
        if since is not None and now - since >= self._settings.limits.keep_alive_timeout:
            self._close()

    def shutdown(self) -> None:
        self._ending = True
        if self._kept is not None:
            self._kept.forget()
        if self.idle_since is not None:
            self._close()
        elif self._reply is not None and not self._waiting:
            self._reply.keep_alive = False

    def abort(self) -> None:
        self.transport.abort()
