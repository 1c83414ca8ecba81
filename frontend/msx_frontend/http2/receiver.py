"""Frames of the client, and what each of them does (RFC 9113 §6)."""

from __future__ import annotations

from collections.abc import Callable

from msx_frontend.http2.errors import ConnectionFault, ErrorCode, StreamFault
from msx_frontend.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    ID_MASK,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    check_priority,
    frame,
    header_fragment,
    window_update,
    without_padding,
)
from msx_frontend.http2.header_blocks import HeaderBlocks
from msx_frontend.http2.headers import Headers, malformed_fields
from msx_frontend.http2.settings import INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, parse_settings
from msx_frontend.http2.stream import Stream, StreamEvents
from msx_frontend.http2.streams import Streams

Accept = Callable[[Stream, Headers, bool], StreamEvents]
"""`(stream, headers, ended)`: a request begins; `ended` when it has no body. Raises nothing, and may answer at once.

The same header block gives the same list, which is not to be changed.
"""

Handler = Callable[[int, int, bytes], None]


class Receiver:
    """`handlers` takes a frame's flags, stream and payload; unknown frames have none. All raise ConnectionFault."""

    def __init__(self, streams: Streams, accept: Accept) -> None:
        self._streams, self._accept = streams, accept
        self._output, self._limits = streams.output, streams.limits
        self._blocks = HeaderBlocks(self._limits.max_header_list)
        self._credit = self._limits.connection_window
        self._owed = 0
        self._block: _OpenBlock | None = None
        self.on_ping_ack: Callable[[bytes], None] = lambda payload: None
        self.settled = False
        """The client's SETTINGS were there."""
        self._all: dict[int, Handler] = {
            DATA: self._data,
            HEADERS: self._headers,
            PRIORITY: self._priority,
            RST_STREAM: self._rst_stream,
            SETTINGS: self._settings,
            PUSH_PROMISE: self._push_promise,
            PING: self._ping,
            GOAWAY: self._goaway,
            WINDOW_UPDATE: self._window_update,
            CONTINUATION: self._continuation,
        }
        self.handlers = self._all

    # -- bodies --

    def _data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._receive(size)
        stream = self._streams.open.get(stream_id)
        if stream is None or stream.remote_ended:
            self._stray("DATA", stream_id)
            return
        if flags & PADDED:
            payload = without_padding(payload)
        try:
            stream.received(size)
            if len(payload) != size:
                stream.grant(size - len(payload))
            self._deliver(stream, payload, bool(flags & END_STREAM))
        except StreamFault as fault:
            self._fail(stream, fault)

    def _receive(self, size: int) -> None:
        """The connection's window is given back at once: it would only make streams wait for each other."""
        self._credit -= size
        self._owed += size
        if self._credit < 0:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR, "More was sent than the connection's window: wait for WINDOW_UPDATE."
            )
        if self._owed >= self._limits.connection_window >> 1:
            self._output.control(window_update(0, self._owed))
            self._credit += self._owed
            self._owed = 0

    def _deliver(self, stream: Stream, payload: bytes, ended: bool) -> None:
        size = len(payload)
        if stream.expected is not None:
            stream.expected -= size
            if stream.expected < 0 or (ended and stream.expected):
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "The body has another length than content-length says.")
        stream.remote_ended = ended
        if size and not stream.finished:
            stream.held += size
            self._streams.held += size
            stream.events.data(payload)  # type: ignore[union-attr]
        if ended and not stream.finished:
            stream.events.ended()  # type: ignore[union-attr]

    def _fail(self, stream: Stream, fault: StreamFault) -> None:
        self._streams.refuse(stream.id, fault.code)
        self._streams.lose(stream, str(fault))

    # -- headers --

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & (PADDED | 0x20):
            payload = header_fragment(flags, stream_id, payload)
        if flags & END_HEADERS:
            self._whole_block(stream_id, payload, bool(flags & END_STREAM))
        else:
            self._block = _OpenBlock(stream_id, bool(flags & END_STREAM), payload)
            self.handlers = _Only(CONTINUATION, self._continuation)

    def _continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None or block.stream_id != stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION came without HEADERS.")
        block.add(payload, self._limits.max_header_list)
        if flags & END_HEADERS:
            self._block, self.handlers = None, self._all
            self._whole_block(stream_id, b"".join(block.parts), block.ended)

    def _whole_block(self, stream_id: int, block: bytes, ended: bool) -> None:
        streams = self._streams
        if stream_id <= streams.last or not stream_id & 1:
            self._trailers(stream_id, block, ended)
            return
        streams.last = stream_id
        request = self._blocks.request(block)
        if request.fault is not None:
            streams.refuse(stream_id, ErrorCode.PROTOCOL_ERROR)
        elif streams.full:
            streams.refuse(stream_id, ErrorCode.REFUSED_STREAM)
        else:
            stream = streams.open[stream_id] = Stream(stream_id, streams, request.content_length, ended)
            if request.size > self._limits.max_header_list:
                stream.send_headers(self._limits.too_large, end=True)
            else:
                stream.events = self._accept(stream, request.headers, ended)

    def _trailers(self, stream_id: int, block: bytes, ended: bool) -> None:
        """They are decoded in any case, for the table's sake."""
        fields = self._blocks.decode(block)
        stream = self._streams.open.get(stream_id)
        if stream is None or stream.remote_ended:
            self._stray("HEADERS", stream_id)
            return
        try:
            if not ended:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "Trailers came that do not end the request.")
            fault = malformed_fields(fields)
            if fault is not None:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, fault)
            self._deliver(stream, b"", True)
        except StreamFault as fault:
            self._fail(stream, fault)

    def _stray(self, name: str, stream_id: int) -> None:
        """For a stream that is not open: raises ConnectionFault unless the client cannot know that yet."""
        if not self._streams.was_reset(stream_id):
            self._streams.check_begun(stream_id, name)
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, f"{name} came for stream {stream_id}, which is closed.")

    # -- one frame each --

    def _priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        check_priority(stream_id, payload)

    def _rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("RST_STREAM", payload, 4)
        stream = self._streams.open.get(stream_id)
        if stream is None:
            self._streams.check_begun(stream_id, "RST_STREAM")
        else:
            code = ErrorCode.named(int.from_bytes(payload, "big"))
            self._streams.lose(stream, f"the client reset the stream ({code})")

    def _settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection("SETTINGS", stream_id)
        self.settled = True
        if flags & ACK:
            _check_size("SETTINGS", payload, 0)
            return
        for name, value in parse_settings(payload):
            if name == INITIAL_WINDOW_SIZE:
                self._streams.resize(value)
            elif name == MAX_FRAME_SIZE:
                self._output.max_frame = value
        self._output.control(frame(SETTINGS, ACK, 0))

    def _push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "A client cannot push.")

    def _ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection("PING", stream_id)
        _check_size("PING", payload, 8)
        if flags & ACK:
            self.on_ping_ack(payload)
        else:
            self._output.control(frame(PING, ACK, 0, payload))

    def _goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        """Of the streams that we begin, and we begin none."""
        _check_connection("GOAWAY", stream_id)
        if len(payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY has at least 8 bytes.")

    def _window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("WINDOW_UPDATE", payload, 4)
        increment = int.from_bytes(payload, "big") & ID_MASK
        if stream_id == 0:
            if increment == 0:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "A window cannot grow by 0.")
            self._output.widen(increment)
            return
        stream = self._streams.open.get(stream_id)
        if stream is None:
            self._streams.check_begun(stream_id, "WINDOW_UPDATE")
            return
        try:
            if increment == 0:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "A window cannot grow by 0.")
            stream.widen(increment)
        except StreamFault as fault:
            self._fail(stream, fault)


class _OpenBlock:
    """A header block whose end has not come."""

    def __init__(self, stream_id: int, ended: bool, first: bytes) -> None:
        self.stream_id, self.ended = stream_id, ended
        self.parts = [first]
        self._size = len(first)

    def add(self, part: bytes, limit: int) -> None:
        """Raises ConnectionFault."""
        self.parts.append(part)
        self._size += len(part)
        if self._size > 2 * limit or len(self.parts) > 64:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM, f"A header block is much larger than the limit ({limit} bytes): send less."
            )


class _Only(dict[int, Handler]):
    """While one kind of frame has to come, all others are faults."""

    def __init__(self, kind: int, handler: Handler) -> None:
        super().__init__({kind: handler})

    def get(self, kind: int, default: object = None) -> Handler:
        return self[kind]

    def __missing__(self, kind: int) -> Handler:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"A frame of type {kind} came where CONTINUATION has to.")


def _check_size(name: str, payload: bytes, size: int) -> None:
    if len(payload) != size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{name} has {size} bytes, not {len(payload)}.")


def _check_connection(name: str, stream_id: int) -> None:
    if stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{name} belongs to the connection, not to stream {stream_id}.")
