"""Requests as they come in: HEADERS, CONTINUATION and DATA (RFC 9113 §6.1, §6.2, §6.10, §8.1)."""

from collections.abc import Callable

from msx_net.http2.errors import ConnectionFault, ErrorCode, StreamFault
from msx_net.http2.frames import (
    CONTINUATION,
    END_HEADERS,
    END_STREAM,
    HAS_PRIORITY,
    PADDED,
    header_fragment,
    window_update,
    without_padding,
)
from msx_net.http2.header_blocks import HeaderBlocks, OpenBlock, RequestBlock
from msx_net.http2.headers import Headers, malformed_fields
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents
from msx_net.http2.streams import Streams

Accept = Callable[[Stream, Headers, bool], StreamEvents]
"""`(stream, headers, ended)`: a request begins; `ended` where it has no body; the stream's `ended` is not called then.

Raises nothing, and may answer at once. The same header block gives the same list, which is not to be changed.
"""


class Requests:
    """`expect` is told the one kind of frame that may come next, or that all may. Everything raises ConnectionFault."""

    def __init__(self, streams: Streams, accept: Accept, expect: Callable[[int | None], None]) -> None:
        self._streams = streams
        self._accept = accept
        self._expect = expect
        self._flow = streams.flow
        self._limits = streams.limits
        self._blocks = HeaderBlocks(self._limits.max_header_list)
        self._open_block: OpenBlock | None = None
        self.draining = False
        """GOAWAY said so: no more streams."""

    @property
    def open_block(self) -> int:
        """The stream whose header block is not complete, or 0."""
        return 0 if self._open_block is None else self._open_block.stream_id

    # -- bodies --

    def data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        increment = self._flow.receive(size)
        if increment:
            self._streams.output.control(window_update(0, increment))
        if flags & PADDED:
            payload = without_padding(payload)
        stream = self._streams.open.get(stream_id)
        if stream is None or stream.remote_ended:
            self._stray("DATA", stream_id, bool(flags & END_STREAM))
            return
        if not payload and not flags & END_STREAM:
            self._streams.flood.frame()
        try:
            self._flow.receive_for(stream, size)
            if len(payload) != size:
                stream.grant(size - len(payload))
            self._deliver(stream, payload, bool(flags & END_STREAM))
        except StreamFault as fault:
            self._streams.fail(stream, fault)

    def _deliver(self, stream: Stream, payload: bytes, ended: bool) -> None:
        size = len(payload)
        if stream.expected is not None:
            stream.expected -= size
            if stream.expected < 0 or (ended and stream.expected):
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "The body has another length than content-length says.")
        stream.remote_ended = ended
        if stream.finished or stream.events is None:
            stream.drop(size)
            return
        if size:
            self._flow.hold(stream, size)
            stream.events.data(payload)
        if ended and not stream.finished:
            stream.events.ended()

    # -- headers --

    def headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & (PADDED | HAS_PRIORITY):
            payload = header_fragment(flags, stream_id, payload)
        if flags & END_HEADERS:
            self._block(stream_id, payload, bool(flags & END_STREAM))
        else:
            self._open_block = OpenBlock(stream_id, bool(flags & END_STREAM), payload, self._limits.max_header_list)
            self._expect(CONTINUATION)

    def continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._open_block
        if block is None or block.stream_id != stream_id:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"CONTINUATION came for stream {stream_id} without HEADERS before it."
            )
        block.add(payload)
        if flags & END_HEADERS:
            self._open_block = None
            self._expect(None)
            self._block(stream_id, block.whole(), block.ended)

    def _block(self, stream_id: int, block: bytes, ended: bool) -> None:
        streams = self._streams
        if stream_id <= streams.last or not stream_id & 1:
            self._trailers(stream_id, block, ended)
            return
        streams.begin(stream_id)
        request = self._blocks.request(block)
        if request.fault is None and not self.draining and len(streams.open) < self._limits.max_streams:
            self._begin(stream_id, request, ended)
            return
        streams.flood.reset()
        streams.refuse(stream_id, ErrorCode.REFUSED_STREAM if request.fault is None else ErrorCode.PROTOCOL_ERROR)

    def _begin(self, stream_id: int, request: RequestBlock, ended: bool) -> None:
        streams = self._streams
        stream = streams.open[stream_id] = Stream(stream_id, streams, streams.output, request.content_length, ended)
        if request.size > self._limits.max_header_list:
            streams.flood.reset()
            stream.send_whole(self._limits.too_large, self._limits.too_large_body)
        elif ended and request.content_length:
            streams.fail(stream, StreamFault(ErrorCode.PROTOCOL_ERROR, "The body of a content-length did not come."))
        else:
            stream.events = self._accept(stream, request.headers, ended)

    def _trailers(self, stream_id: int, block: bytes, ended: bool) -> None:
        """They are decoded in any case, for the table's sake."""
        fields = self._blocks.decode(block)
        stream = self._streams.open.get(stream_id)
        if stream is None or stream.remote_ended:
            self._stray("HEADERS", stream_id, ended)
            return
        try:
            wrong = malformed_fields(fields) if ended else "Trailers came that do not end the request."
            if wrong is not None:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, wrong)
            self._deliver(stream, b"", True)
        except StreamFault as fault:
            self._streams.fail(stream, fault)

    def _stray(self, name: str, stream_id: int, ended: bool) -> None:
        """Raise ConnectionFault for a stream that is not open, unless the client may not know that yet."""
        self._streams.flood.frame()
        if not self._streams.was_reset(stream_id):
            self._streams.check_begun(stream_id, name)
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, f"{name} came for stream {stream_id}, which is closed.")
        if ended:
            self._streams.client_ended(stream_id)
