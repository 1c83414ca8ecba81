"""One connection of HTTP/1.1: what its transport and its listener tell it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from msx_core.replies.reply_buffer import STALL_LIMIT
from msx_core.service_errors import ServiceError
from msx_net.connections import turns
from msx_net.connections.connection import ON_ITS_WAY, close_unless_asked, forgiven, may_be_asked
from msx_net.http.asgi_request import client_text
from msx_net.http.job_reply import begin
from msx_net.http.v1.asgi_scope import endpoints
from msx_net.http.v1.flow_control import TransportFlow
from msx_net.http.v1.incoming import unreadable
from msx_net.http.v1.ordered_replies import OrderedReplies
from msx_net.http.v1.reader import Http1Reader
from msx_net.http.v1.server import AppConfig, ServerState
from msx_net.http.v1.settings import Http1Settings
from msx_net.http.v1.slow_client import Close, SlowClient

log = logging.getLogger("msx.http")


class Http1Connection(OrderedReplies, asyncio.Protocol):
    """A connection (net/connections/connection.py), and a protocol of uvicorn's (`server.py`)."""

    accepted: float | None = None
    """`loop.time()` of the accept, where that was before the connection was made."""

    def __init__(
        self,
        settings: Http1Settings,
        *,
        config: AppConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(settings, config, server_state, app_state)
        self.loop = _loop or asyncio.get_running_loop()
        self._reader = Http1Reader(self, settings.limits)

    # -- the transport --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport, self.flow = transport, TransportFlow(transport)
        self._ends = endpoints(transport)
        self._client = client_text(self._ends.client)
        self._idle_since = self.loop.time()
        self._slow_client = SlowClient(self._limits, self._idle_since if self.accepted is None else self.accepted)
        self.server_state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self._deaf = True
        self._waiting.clear()
        self._rest = b""
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
        elif self._waiting or self._rest:
            self._next()

    def data_received(self, data: bytes) -> None:
        """A request whose head is the last one's, word for word, needs no parser."""
        kept = self._kept
        if (
            kept is not None
            and kept.size == len(data)
            and kept.known.epoch.is_current
            and self._reply is None
            and self._reader.request is None
            and data.startswith(kept.raw)
            and not self.flow.write_paused
        ):
            reply = self._begin(kept)
            if kept.is_large:
                reply.hold(kept.size)
            if not reply.response_complete:
                begin(kept.known.template, reply.id, data[len(kept.raw) :], reply)
        elif self._rest:
            self._rest += data
        elif not self._deaf:
            self.read(data)
        elif self._lingering is not None:
            self._lingering.drop(len(data), self.loop.time())
        else:
            self._unread = True

    def read(self, data: bytes) -> None:
        reader = self._reader
        between, begun = reader.request is None, reader.begun
        try:
            read = reader.feed(data)
        except ServiceError as error:
            self._cannot_read(error)
        else:
            if read < len(data):
                self._read_later(data[read:])
            elif (
                between
                and reader.request is None
                and reader.begun == begun + 1
                and self._kept is not None  # else the request waits its turn, or is one for the app
                and self._answering is reader.last
                and not self._ending
            ):
                self._kept.keep(data)

    def _read_later(self, rest: bytes) -> None:
        """When there is room for more requests, or when others have had their turn."""
        self._rest = rest
        if self.requests_wait:
            self.flow.pause_reading()
            return
        self.flow.hold_back()
        if self._kept is not None:
            self._kept.forget()  # what comes now does not begin with a head
        turns.after_others(self.loop, self._read_on)

    def _read_on(self) -> None:
        rest, self._rest = self._rest, b""
        if rest:
            self.read(rest)
        if not self._rest or self.requests_wait:
            self.flow.go_on()

    def _cannot_read(self, error: ServiceError) -> None:
        """No request can be found behind what was wrong: this reply is the last, in its turn."""
        log.info("no further request of %s is read: %s", self._client, error.message)
        self._deaf = self._unread = True
        in_body = self._answering is not None and self._reader.request is self._answering
        if self._reply is None and in_body:
            self._end()  # it was refused, and the rest of its body was dropped
        elif self._reply is None:
            self.tell(error)
        elif in_body:
            self._reply.refuse(error)
        else:
            self._waiting.append(unreadable(error))

    # -- what its listener calls --

    @property
    def idle_since(self) -> float | None:
        busy = self._reply or self._reader.request or self._waiting or self._rest or self._lingering
        return None if busy else self._idle_since

    def forgive(self, seconds: float, now: float) -> None:
        self._idle_since = forgiven(self._idle_since, seconds, now)
        self._slow_client.forgive(seconds, now)
        if self._lingering is not None:
            self._lingering.forgive(seconds, now)

    def look(self, now: float) -> None:
        writing = self._reply is not None and not self.flow.write_paused
        # While a reply is being written, only a transport that takes no more says how much is unread.
        unsent = 0 if writing else self.transport.get_write_buffer_size()
        if self._slow_client.reads_nothing_for(now, unsent) >= STALL_LIMIT:
            log.info("%s took nothing of its reply for %g s: it is closed", self._client, STALL_LIMIT)
            self.abort()
        elif self._lingering is not None:
            self._lingering.look(now)
        elif self._reader.request is not None or self._reader.begun == 0:
            self._look_at_request(now)
        elif not (self._reply or self._rest) and now - self._idle_since >= self._limits.keep_alive_timeout:
            close_unless_asked(self.transport)

    def _look_at_request(self, now: float) -> None:
        """It is not complete, or not a byte of it has come yet."""
        in_turn = self._reader.request is self._answering
        verdict = self._slow_client.judge(
            now,
            self._reader,
            paused=self.flow.read_paused or self.flow.held_back or (self._reply is not None and not in_turn),
            in_turn=in_turn,
            answered=self._idle_since if self._reply is None else None,
        )
        if verdict is Close.UNLESS_ASKED:
            close_unless_asked(self.transport)
        elif verdict is Close.AT_ONCE:
            self.transport.close()
        elif verdict is not None:
            self._cannot_read(verdict)

    def shutdown(self, on_its_way: float = ON_ITS_WAY) -> None:
        if not self._ending:
            self._ending = True
            self.loop.call_later(on_its_way, self.shutdown, on_its_way)  # a server of uvicorn's calls once
        if self._kept is not None:
            self._kept.forget()
        if self._lingering is not None:
            if not may_be_asked(self._idle_since, self.loop.time(), on_its_way):
                self.transport.close()
        elif self.idle_since is not None:
            if not may_be_asked(self._idle_since, self.loop.time(), on_its_way):
                close_unless_asked(self.transport)
        elif self._reply is not None and not self._waiting and not self._reply.promises_more:
            self._reply.keep_alive = False

    def abort(self) -> None:
        self.transport.abort()
