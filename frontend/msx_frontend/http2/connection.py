"""One connection of a client that speaks HTTP/2."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msx_frontend.http2.errors import ConnectionFault, ErrorCode
from msx_frontend.http2.frames import HEAD, HEAD_SIZE, ID_MASK, PREFACE, goaway, window_update
from msx_frontend.http2.limits import DEFAULT_WINDOW, Limits
from msx_frontend.http2.output import Output
from msx_frontend.http2.receiver import Accept, Receiver
from msx_frontend.http2.settings import settings_frame
from msx_frontend.http2.streams import Streams

_unpack = HEAD.unpack_from


class Http2Protocol(asyncio.Protocol):
    """`accept` is called for each request, `on_lost` when the connection is gone. Clear text needs prior knowledge."""

    def __init__(self, accept: Accept, limits: Limits, on_lost: Callable[[Http2Protocol], None]) -> None:
        self._accept, self._limits, self._on_lost = accept, limits, on_lost
        self._begun = False
        """The client's preface was there."""
        self._closing = False
        """No more requests: the connection ends with its last stream."""
        self._over = False
        """Nothing that comes in counts any more."""
        self._rest: list[bytes] = []
        self._held = 0
        self._needed = len(PREFACE)
        """Bytes in `rest`, and how many there have to be before it makes sense to look at them."""
        self.peer: Any = None

    # -- the transport --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self.peer = transport.get_extra_info("peername")
        self._output = Output(transport, self.abort)
        self._streams = Streams(self._limits, self._output, self._emptied)
        self._receiver = Receiver(self._streams, self._accept)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._streams.lose_all("the connection was lost")
        self._on_lost(self)

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._streams.open)

    # -- what comes in --

    def data_received(self, data: bytes) -> None:
        if self._rest or self._needed > len(data):
            self._keep(data)
            if self._held < self._needed:
                return
            data = b"".join(self._rest)
            self._rest.clear()
            self._held = 0
        if not self._over:
            try:
                self._parse(data)
            except ConnectionFault as fault:
                self._fail(fault)

    def _parse(self, data: bytes) -> None:
        start = 0 if self._begun else self._begin(data)
        end, receiver, largest = len(data), self._receiver, self._limits.max_frame_size
        while end - start >= HEAD_SIZE:
            high, low, kind, flags, stream_id = _unpack(data, start)
            size = high << 8 | low
            if size > largest:
                text = f"A frame has at most {largest} bytes (SETTINGS_MAX_FRAME_SIZE), not {size}."
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, text)
            after = start + HEAD_SIZE + size
            if after > end:
                self._needed = after - start
                break
            handler = receiver.handlers.get(kind)
            if handler is not None:
                handler(flags, stream_id & ID_MASK, data[start + HEAD_SIZE : after])
            start = after
        else:
            self._needed = HEAD_SIZE
        if start < end:
            self._keep(data[start:])

    def _keep(self, data: bytes) -> None:
        self._rest.append(data)
        self._held += len(data)

    def _begin(self, data: bytes) -> int:
        """Where the frames begin."""
        if not data.startswith(PREFACE):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "This port speaks HTTP/2.")
        self._begun = True
        self._output.put(settings_frame(self._limits))
        self._output.put(window_update(0, self._limits.connection_window - DEFAULT_WINDOW))
        return len(PREFACE)

    # -- the end --

    def _fail(self, fault: ConnectionFault) -> None:
        self._over = True
        self._output.put(goaway(self._streams.last, fault.code, str(fault)))
        self._streams.lose_all(str(fault))
        self._close()

    def shut_down(self) -> None:
        """GOAWAY; the connection ends with its last stream."""
        if not self._closing:
            self._closing = True
            self._output.put(goaway(self._streams.last, ErrorCode.NO_ERROR))
            if not self._streams.open:
                self._close()

    def _emptied(self) -> None:
        if self._closing:
            self._close()

    def _close(self) -> None:
        self._output.flush()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
