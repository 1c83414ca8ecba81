"""One connection that answers jobs at the level of its parser's callbacks; all the rest goes to the ASGI app."""

from __future__ import annotations

import asyncio
from typing import Any

from msx_frontend.errors import PayloadTooLarge, ServiceError
from msx_frontend.held_bytes import UNCOUNTED, Hold
from msx_frontend.net.http.asgi_request import client_text
from msx_frontend.net.http.job_reply import begin
from msx_frontend.net.http.v1.cached_head import CachedHead
from msx_frontend.net.http.v1.direct import Direct
from msx_frontend.net.http.v1.direct_reply import DirectReply
from msx_frontend.net.http.v1.protocol import HttpProtocol
from msx_frontend.net.http.v1.usual_head import UsualHead


class DirectProtocol(HttpProtocol):
    """A job is direct where nothing else of its connection is under way: it may not overtake."""

    def __init__(self, direct: Direct, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.direct = direct
        self.client_text = ""
        self._known: CachedHead | None = None
        self._receiving: DirectReply | None = None
        self._parts: list[bytes] = []
        """The part of the body that has arrived."""
        self._received = 0
        self._hold: Hold | None = None
        """Counts the bytes of a large body; made when the first one comes."""
        self._open: DirectReply | None = None
        self._between = True
        """The parser stands between two requests."""
        self._begun = 0
        """How many requests began since bytes arrived."""
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.client_text = client_text(self.client)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._open is not None:
            self._open.leave()
        super().connection_lost(exc)
        self._open = None
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._open is not None:
            self._open.flush()

    # -- the request --

    def data_received(self, data: bytes) -> None:
        """A request whose head is the last one's, word for word, needs no parser."""
        known, between = self._known, self._between
        if (
            known is not None
            and known.size == len(data)
            and between
            and self._open is None
            and data.startswith(known.raw)
        ):
            reply = self._begin(known)
            if known.is_large:
                self._holds(reply, known.size)
            if not reply.response_complete:
                begin(known.template, reply.id, data[len(known.raw) :], reply)
        else:
            self._parse(data)
            if between and self._between and self._begun == 1 and self._known is not None:
                self._known.keep(data)

    def _parse(self, data: bytes) -> None:
        self._begun = 0
        super().data_received(data)

    def on_message_begin(self) -> None:
        """The ASGI scope is made where it is needed."""
        self._between = False
        self._begun += 1
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        if self.transport.is_closing():
            return  # a client that sent more requests behind the one that ended the connection must repeat them
        known = self._known_head()
        self._known = known
        if known is None:
            self._make_scope()
            super().on_headers_complete()
        else:
            self._parts, self._received = [], 0
            self._receiving = self._begin(known)

    def on_body(self, body: bytes) -> None:
        if self._receiving is None:
            super().on_body(body)
        elif not self._receiving.response_complete:
            self._parts.append(body)
            self._received += len(body)
            if self._received > (limit := self.direct.limit):
                error = PayloadTooLarge(f"The request is larger than max_request_size ({limit} bytes).")
                self._receiving.refuse(error, body_read=False)
            elif self._received >= UNCOUNTED:
                self._holds(self._receiving, self._received)

    def _holds(self, reply: DirectReply, size: int) -> None:
        """Until it is answered."""
        if reply.response_complete:
            return
        if self._hold is None:
            self._hold = self.direct.held.hold()
        try:
            self._hold.resize(size)
        except ServiceError as error:
            self._parts = []
            reply.refuse(error, body_read=False)

    def on_message_complete(self) -> None:
        self._between = True
        reply, self._receiving = self._receiving, None
        parts, self._parts = self._parts, []
        if reply is None:
            super().on_message_complete()
        elif not reply.response_complete:
            begin(reply.known.template, reply.id, parts[0] if len(parts) == 1 else b"".join(parts), reply)

    def _known_head(self) -> CachedHead | None:
        """What is known of this head, if it can be answered directly."""
        parser, last = self.parser, self._known
        if not self._free or self.expect_100_continue or parser.should_upgrade() or parser.get_http_version() != "1.1":
            return None
        method: bytes = parser.get_method()
        if last is not None and (last.url, last.method) == (self.url, method) and last.head.raw_headers == self.headers:
            return last
        return self.direct.know(method, self.url, self.headers, self.client_text)

    @property
    def _free(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _make_scope(self) -> None:
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers

    # -- the reply --

    def _begin(self, known: CachedHead) -> DirectReply:
        reply = self.cycle = self._open = DirectReply(self, known)  # type: ignore[assignment]
        if known.checked:
            self._check(reply)
        return reply

    def _check(self, reply: DirectReply) -> None:
        try:
            self.direct.check(reply.known)
        except ServiceError as error:
            reply.refuse(error, body_read=False)

    def usual_head(self, usual: UsualHead, request_id: str, size: int, *, json: bool) -> bytes:
        """The head of an ordinary reply whose body has `size` bytes."""
        before, after, after_json = usual.parts(self.server_state.default_headers)
        return b"%b%b%b%d\r\n\r\n" % (before, request_id.encode(), after_json if json else after, size)

    def answered(self, reply: DirectReply) -> None:
        """As usual: nothing is to be done but to wait for the next request, unless one waits already."""
        self.direct.answered(reply)
        if self._hold is not None:
            self._hold.release()
        if self.pipeline or self.flow.read_paused or self.timeout_keep_alive_task is None:
            self.completed(reply)
        else:
            self._open = None
            self.server_state.total_requests += 1
            self._idle_since = self.loop.time()

    def completed(self, reply: DirectReply) -> None:
        self._open = None
        if self._hold is not None:
            self._hold.release()
        if not reply.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """Replaces uvicorn's, which stops and starts a timer for each request: looking later costs less."""
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.timeout_keep_alive_task is None:
            self._close_when_idle(self.timeout_keep_alive)

    # -- an idle connection --

    def _unset_keepalive_if_required(self) -> None:
        """The timer looks by itself whether something has happened."""

    def _close_when_idle(self, after: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(after, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if not (self._free and self._between):
            return  # the end of that reply starts it anew
        if left > 0:
            self._close_when_idle(left)
        elif not self.transport.is_closing():
            self.transport.close()
