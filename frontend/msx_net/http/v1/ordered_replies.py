"""The requests of one connection in their order, and their replies: jobs directly, the rest by the ASGI app."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Any

from msx_core.held_bytes import Hold
from msx_core.service_errors import ServiceError
from msx_net.http.failures import plain_failure
from msx_net.http.response_head import CLOSE
from msx_net.http.v1.asgi_cycle import AsgiCycle
from msx_net.http.v1.asgi_scope import Endpoints, scope_of
from msx_net.http.v1.direct_reply import Http1Reply
from msx_net.http.v1.flow_control import TransportFlow
from msx_net.http.v1.incoming import IncomingRequest
from msx_net.http.v1.kept_head import KeptHead
from msx_net.http.v1.lingering import Lingering
from msx_net.http.v1.server import AppConfig, ServerState
from msx_net.http.v1.settings import Http1Settings
from msx_net.http.v1.usual_head import UsualHead
from msx_net.http.wire import CONTINUE, head_bytes

MOST_WAITING = 64
"""Requests behind the one that is answered; if there are more, what has come behind them is not looked at."""


class OrderedReplies:
    """One request is answered at a time. Those behind it wait, read or not: nothing overtakes."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: TransportFlow
    usual: UsualHead
    """Makes the head of an ordinary reply to the request that is answered."""
    _ends: Endpoints
    _client: str

    def __init__(
        self, settings: Http1Settings, config: AppConfig, server_state: ServerState, app_state: dict[str, Any]
    ) -> None:
        if not config.loaded:
            config.load()
        self._settings, self._direct, self._limits = settings, settings.direct, settings.limits
        self._app, self._app_state, self.server_state = config.loaded_app, app_state, server_state
        self._kept: KeptHead | None = None
        self._waiting: deque[IncomingRequest] = deque()
        """Requests behind the one that is answered."""
        self._rest = b""
        """Bytes that have come and are not parsed yet: behind the waiting requests, or after the end of a turn."""
        self._answering: IncomingRequest | None = None
        """The last request that is answered, or was; None before the first one."""
        self._reply: Http1Reply | AsgiCycle | None = None
        """Reply to that request; None if nothing is under way."""
        self.held: Hold | None = None
        """Counts the bytes of a large body until it is answered; made when the first one comes."""
        self._ending = False
        """The reply to the last request that has come ends the connection."""
        self._deaf = self._unread = False
        """Whether to read nothing more; whether something has come, or is due, that was not read."""
        self._lingering: Lingering | None = None
        self._idle_since = 0.0

    # -- requests, as the reader finds them --

    def request_begun(self, request: IncomingRequest) -> None:
        if self._deaf:
            self._unread = True
            return  # a client that sent more requests behind the one that ended the connection must repeat them
        if self._reply is None and not self.flow.write_paused:
            self._start(request)
        else:
            self._waiting.append(request)
            self.flow.pause_reading()

    def body_came(self, request: IncomingRequest) -> None:
        if request is self._answering:
            if self._reply is None:
                request.take()  # it was refused
            else:
                self._reply.body_came(request)

    def request_complete(self, request: IncomingRequest) -> None:
        self._deaf = self._deaf or not request.keeps_alive
        if self._reply is not None and request is self._answering:
            self._reply.request_complete(request)

    @property
    def requests_wait(self) -> bool:
        return len(self._waiting) >= MOST_WAITING

    def read(self, data: bytes) -> None:
        """Find the requests in these bytes."""
        raise NotImplementedError

    # -- their replies, one behind the other --

    def _start(self, request: IncomingRequest) -> None:
        self._answering = request
        if request.error is not None:
            self.tell(request.error)
        elif (kept := self._known_head(request)) is not None:
            self._start_job(request, kept)
        else:
            try:
                scope = scope_of(request, self._ends, self._app_state)
            except ServiceError as error:
                self.tell(error)
            else:
                self._reply = AsgiCycle(self, request)
                self._reply.start(self._app, scope)

    def _start_job(self, request: IncomingRequest, kept: KeptHead) -> None:
        reply = self._begin(kept)
        if reply.response_complete:
            return
        request.is_watched = kept.watches_body
        if self._ending and not self._waiting:
            reply.keep_alive = False
        if request.expects_continue and not request.complete:
            request.expects_continue = False
            self.transport.write(CONTINUE)
        if request.size:
            reply.body_came(request)
        if request.complete:
            reply.request_complete(request)

    def _known_head(self, request: IncomingRequest) -> KeptHead | None:
        """Known state of this head, if its request can be answered directly."""
        direct, last = self._direct, self._kept
        if direct is None or (
            last is not None
            and last.known.epoch.is_current
            and last.words == (request.url, request.method, request.version, request.headers)
        ):
            return last
        known = direct.know(
            request.method, request.url, request.headers, self._client, self._ends.server, request.version
        )
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
        if known.refusal is not None:
            reply.refuse(known.refusal)
        return reply

    def answered(self, reply: Http1Reply) -> None:
        """As usual: nothing is to be done but to wait for the next request, unless one waits already."""
        reply.direct.write_entry((reply.known.asked, reply.id, reply.started, monotonic()))
        if self.held is not None:
            self.held.release()
        if self._waiting or self.flow.read_paused:
            self.completed(reply)
        else:
            self._reply = None
            self.server_state.total_requests += 1
            self._idle_since = self.loop.time()

    def completed(self, reply: Http1Reply | AsgiCycle) -> None:
        if self.held is not None:
            self.held.release()
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if not reply.keep_alive:
            self._end()
        elif self._waiting:
            self.loop.call_soon(self._next)  # not at once: a thousand that are refused would be as many frames deep
        elif self._deaf:
            self._end()
        else:
            self._reply = None
            if self._answering is not None and self._answering.is_unread:
                self._answering.take()
            self.flow.resume_reading()

    def _next(self) -> None:
        """A client that does not read its replies gets no more of them: `resume_writing` calls this again."""
        if self.flow.write_paused:
            self._reply = None
            return
        if self._waiting:
            self._start(self._waiting.popleft())
        if self._rest and not self._waiting and not self.flow.held_back:
            rest, self._rest = self._rest, b""
            self.read(rest)
        if not (self._waiting or self._deaf):
            self.flow.resume_reading()

    # -- its end --

    @property
    def must_close(self) -> bool:
        """The reply whose head is about to be written is the last one."""
        request = self._answering
        if request is not None and request.is_unread:
            # The rest of a body that is not needed is read, and the connection goes on, if that is not too much.
            length = request.length
            too_long = length is None or length > self._limits.max_refused_body_size
            if too_long or request.expects_continue or self._deaf:
                return True
        return self._ending and not self._waiting

    def tell(self, error: ServiceError) -> None:
        """Answer what is not a request, and close."""
        headers, body = plain_failure(error)
        defaults = self.server_state.default_headers
        self.transport.write(head_bytes(error.status, [*defaults, *headers, CLOSE]) + body)
        self._end()

    def _end(self) -> None:
        """End it with the reply that was written last."""
        unread = (
            self._unread
            or bool(self._waiting or self._rest)
            or (self._answering is not None and self._answering.is_unread)
        )
        self._deaf, self._reply = True, None
        self._waiting.clear()
        self._rest = b""
        if unread and not self.transport.is_closing():
            self.flow.resume_reading()
            self._lingering = Lingering(self.transport, self._limits, self.loop.time())
        else:
            self.transport.close()
