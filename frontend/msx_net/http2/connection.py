"""One connection of a client that speaks HTTP/2."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.flow_control import FlowControl
from msx_net.http2.frame_reader import IncomingFrames
from msx_net.http2.frames import (
    LARGEST_ID,
    PING,
    PREFACE,
    frame,
    goaway,
    window_update,
)
from msx_net.http2.limits import DEFAULT_WINDOW, Limits
from msx_net.http2.output import Output, Sender
from msx_net.http2.preface import check_preface
from msx_net.http2.receiver import Receiver
from msx_net.http2.requests import Accept
from msx_net.http2.settings import settings_frame
from msx_net.http2.stall import StallWatch
from msx_net.http2.streams import Streams
from msx_net.http2.timers import Timers
from msx_net.http2.watch import Watch

JITTER = 0.1
"""Part of an age by which it differs, so that connections that began together do not end together (as gRPC has it)."""

ROUND_TRIP = 1.0
"""Seconds that a client has to answer the PING that says: it has seen GOAWAY."""

ON_ITS_WAY = 0.5
"""Seconds in which the first bytes of a client that has connected may come."""

LINGER = 2.0
"""Seconds for the last words to leave, and for a client to read them."""

_SHUT_DOWN = b"shutdown"


class Http2Protocol(IncomingFrames):
    """`accept` is called for each request, `on_made` once there is a connection (with TLS: behind the handshake), and
    `on_lost` when it is gone. Clear text needs prior knowledge.
    """

    def __init__(
        self,
        accept: Accept,
        limits: Limits,
        on_lost: Callable[[Http2Protocol], None],
        on_made: Callable[[Http2Protocol], None] | None = None,
    ) -> None:
        super().__init__(limits)
        self._accept = accept
        self._on_lost, self._on_made = on_lost, on_made
        self._shutting_down = False
        self.peer: Any = None
        self.own: Any = None
        """The ends of the connection, as the transport names them."""

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._streams.open)

    @property
    def held(self) -> int:
        """Bytes of requests that their owners have not consumed."""
        return self._streams.flow.held

    # -- the transport --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self.peer, self.own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._stall = StallWatch[Sender](self._limits.stall_timeout, transport.get_write_buffer_size, self._stalled)
        self._output = Output(transport, FlowControl(self._limits), self._stall, self.abort)
        self._streams = Streams(self._output, self._emptied)
        self._receiver = Receiver(self._streams, self._accept, self._settled, self._pong)
        self._timers = Timers()
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._watch = Watch(self._streams, now, abort=self.abort, shutdown=self.shutdown)
        if self._on_made is not None:
            self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._timers.stop()
        self._streams.lose_all("the connection was lost")
        self._on_lost(self)

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()

    # -- how it begins --

    def _begin(self, data: bytes) -> bytes:
        """Bytes after the preface. Raises NotHttp2."""
        check_preface(data)
        if len(data) < len(PREFACE):
            self._keep(data)
            return b""
        self._begun = True
        self._output.put(settings_frame(self._limits))
        more = self._limits.connection_window - DEFAULT_WINDOW
        if more:
            self._output.put(window_update(0, more))
        return data[len(PREFACE) :]

    def _settled(self) -> None:
        """The client is one, and grows older."""
        if self._limits.max_age is not None:
            age = self._limits.max_age * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
            self._timers.after(age, self._grown_old)

    # -- once a second --

    @property
    def idle_since(self) -> float | None:
        """See `Connection`; to the precision with which `look` is called."""
        return None if self._streams.open else self._watch.idle_since

    def forgive(self, seconds: float, now: float) -> None:
        """See `Connection`."""
        self._watch.forgive(seconds, now)
        self._stall.forgive(seconds, now)

    def look(self, now: float) -> None:
        """See `Connection`."""
        if self._over:
            return
        if not self._receiver.settled:
            self._watch.look_at_beginning(now)
            return
        heard, self._heard = self._heard, False
        try:
            block = self._receiver.requests.open_block
            self._watch.look(now, heard=heard, block=block, partial=self._partial())
            self._stall.look(now)
        except ConnectionFault as fault:
            self._fail(fault)

    # -- the end --

    def shutdown(self, on_its_way: float = ON_ITS_WAY) -> None:
        """See `Connection`.

        GOAWAY; what the client sends before it knows is answered, and the connection ends with its last stream.
        """
        if self._shutting_down or self._over:
            return
        if not self._begun:
            if self._loop.time() - self._watch.idle_since >= on_its_way:
                self._end(b"")
            return
        self._shutting_down = True
        self._output.put(goaway(LARGEST_ID, ErrorCode.NO_ERROR, "shutting down"))
        self._output.put(frame(PING, 0, 0, _SHUT_DOWN))
        self._timers.after(ROUND_TRIP, self._refuse_more)

    def abort(self) -> None:
        """Ends the connection, and all that is under way."""
        self._transport.abort()

    def _grown_old(self) -> None:
        self.shutdown()
        self._timers.after(self._limits.max_age_grace, self.abort)

    def _pong(self, payload: bytes) -> None:
        if self._shutting_down and payload == _SHUT_DOWN:
            self._refuse_more()

    def _refuse_more(self) -> None:
        requests = self._receiver.requests
        if not requests.draining and not self._over:
            requests.draining = True
            self._output.put(goaway(self._streams.last, ErrorCode.NO_ERROR, "shutting down"))
            self._emptied()

    def _emptied(self) -> None:
        if self._receiver.requests.draining and not self._streams.open and not self._over:
            self._end(b"")

    def _stalled(self, sender: Sender | None) -> None:
        if sender is None:
            self.abort()
        elif (stream := self._streams.open.get(sender.id)) is not None:
            text = f"the client took nothing of its answer for {self._limits.stall_timeout:g} s"
            self._streams.refuse(stream.id, ErrorCode.CANCEL)
            self._streams.lose(stream, text)

    def _fail(self, fault: ConnectionFault) -> None:
        self._over = True
        self._streams.lose_all(str(fault))
        self._end(goaway(self._streams.last, fault.code, str(fault)))

    def _end(self, last_words: bytes) -> None:
        """The client's end of the socket is read until it closes: to close first could cost it our last words."""
        self._over = True
        self._output.put(last_words)
        self._output.flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()
        self._timers.after(LINGER, self.abort)
