"""Requests whose bytes come too slowly: header blocks that do not end, and bodies."""

from msx_net.connections.connection import forgiven
from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.frames import CONTINUATION, DATA, HEADERS
from msx_net.http2.stream import Stream
from msx_net.http2.streams import Streams


class SlowRequests:
    """Slow requests of one connection; `look` is called about once a second. A body in one piece costs nothing."""

    __slots__ = ("_bodies", "_head", "_head_since", "_looked", "_streams")

    def __init__(self, streams: Streams, now: float) -> None:
        self._streams = streams
        self._looked = now
        self._bodies: dict[int, float] = {}
        """Seconds for which each body that is not complete has been read."""
        self._head = self._head_since = 0.0
        """The stream whose header block is not complete, or 0, and since when."""

    def forgive(self, seconds: float, now: float) -> None:
        """See `Connection`."""
        self._looked = forgiven(self._looked, seconds, now)
        self._head_since = forgiven(self._head_since, seconds, now)

    def look(self, now: float, block: int, partial: tuple[int, int, int]) -> None:
        """`block` is the stream whose header block is open, or 0; `partial` the kind, the stream and the bytes of a
        frame that is not complete. Raises ConnectionFault.
        """
        kind, stream_id, size = partial
        self._look_at_head(now, block or (stream_id if kind in (HEADERS, CONTINUATION) else 0))
        passed, self._looked = now - self._looked, now
        self._look_at_bodies(passed, stream_id if kind == DATA else 0, size)

    def _look_at_head(self, now: float, stream_id: int) -> None:
        if not stream_id or stream_id != self._head:
            self._head, self._head_since = stream_id, now
        elif now - self._head_since >= (limit := self._streams.limits.head_timeout):
            text = f"The headers of stream {stream_id} are not complete after {limit:g} s."
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, text)

    def _look_at_bodies(self, passed: float, partial_stream: int, partial: int) -> None:
        before, self._bodies = self._bodies, {}
        for stream in list(self._streams.open.values()):
            if stream.remote_ended or (stream.events is None and not stream.dropped_until):
                continue
            read = before.get(stream.id, -passed) + (passed if stream.receive_window > 0 else 0)
            self._bodies[stream.id] = read
            came = stream.received + (partial if stream.id == partial_stream else 0)
            if stream.dropped_until:
                self._look_at_dropped(stream, came, read)
            elif self._is_slow(came, read) and stream.events is not None:
                rate = self._streams.limits.min_body_rate
                stream.events.too_slow(f"{came} bytes of the request came in {read:.0f} s, fewer than {rate} a second")

    def _look_at_dropped(self, stream: Stream, came: int, read: float) -> None:
        """A client that has read its answer is silent, and may wait for the end of the stream."""
        if came == stream.dropped or self._is_slow(came, read):
            stream.end_reading()
        stream.dropped = came

    def _is_slow(self, came: int, read: float) -> bool:
        limits = self._streams.limits
        return read > limits.body_grace and came < read * limits.min_body_rate
