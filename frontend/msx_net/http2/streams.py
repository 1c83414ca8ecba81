"""The streams of one connection: which are open, and which were."""

from collections import deque
from collections.abc import Callable

from msx_net.http2.errors import ConnectionFault, ErrorCode, StreamFault
from msx_net.http2.flood import Flood
from msx_net.http2.frames import rst_stream
from msx_net.http2.output import Output
from msx_net.http2.stream import Stream

REMEMBERED = 1_000
"""Streams that were reset here: their clients may not know it yet."""

GAPS = 100
"""Ranges of numbers that a client has skipped, the latest ones."""


class Streams:
    __slots__ = ("_on_empty", "_reset", "_skipped", "flood", "flow", "last", "limits", "open", "output")

    def __init__(self, output: Output, on_empty: Callable[[], None]) -> None:
        self.output = output
        self.flow = output.flow
        self.limits = output.flow.limits
        self._on_empty = on_empty
        self.open: dict[int, Stream] = {}
        self.last = 0
        """The highest stream that the client has begun."""
        self._reset: dict[int, None] = {}
        """Streams in the order in which they were reset."""
        self._skipped: deque[range] = deque(maxlen=GAPS)
        self.flood = Flood(lambda: self.last + self.flow.sent_frames)

    @property
    def full(self) -> bool:
        return len(self.open) >= self.limits.max_streams

    def was_reset(self, stream_id: int) -> bool:
        """The server gave it up: the client may not know that yet, and still send for it."""
        return stream_id in self._reset

    def client_ended(self, stream_id: int) -> None:
        """The client has said the last of a stream that was reset here."""
        self._reset.pop(stream_id, None)

    def begin(self, stream_id: int) -> None:
        """A number that is higher than `last`: those between are closed from now on (RFC 9113 §5.1.1)."""
        if stream_id > self.last + 2:
            self._skipped.append(range(self.last + 1, stream_id))
        self.last = stream_id

    def close(self, stream: Stream) -> None:
        """Both sides have said all, or need not any more."""
        if not stream.remote_ended:
            self._remember_reset(stream.id)
        self._drop(stream)

    def reset(self, stream: Stream, code: ErrorCode) -> None:
        self.refuse(stream.id, code)
        self._drop(stream)

    def fail(self, stream: Stream, fault: StreamFault) -> None:
        """The client's doing: RST_STREAM, and its owner is told. Raises ConnectionFault when it happens too often."""
        self.flood.reset()
        self.refuse(stream.id, fault.code)
        self.lose(stream, str(fault))

    def refuse(self, stream_id: int, code: ErrorCode) -> None:
        """RST_STREAM."""
        self._remember_reset(stream_id)
        self.output.control(rst_stream(stream_id, code))

    def _remember_reset(self, stream_id: int) -> None:
        self._reset[stream_id] = None
        if len(self._reset) > REMEMBERED:
            del self._reset[next(iter(self._reset))]

    def lose(self, stream: Stream, reason: str) -> None:
        """The client's doing: its owner is told, unless the answer was complete for it."""
        told = not stream.finished
        stream.forget()
        self._drop(stream)
        if told and stream.events is not None:
            stream.events.lost(reason)

    def lose_all(self, reason: str) -> None:
        for stream in list(self.open.values()):
            self.lose(stream, reason)

    def _drop(self, stream: Stream) -> None:
        self.flow.release(stream, stream.held)
        if self.open.pop(stream.id, None) is not None and not self.open:
            self._on_empty()

    def resize(self, window: int) -> None:
        """SETTINGS_INITIAL_WINDOW_SIZE holds for streams that are open, too. Raises ConnectionFault."""
        change = self.flow.resize(window)
        try:
            for stream in list(self.open.values()):
                stream.widen(change)
        except StreamFault as fault:
            raise ConnectionFault(fault.code, str(fault)) from None

    def check_begun(self, stream_id: int, frame: str) -> None:
        """Raises ConnectionFault for a stream that the client has not begun."""
        if stream_id > self.last or not stream_id & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{frame} came for stream {stream_id}, which is idle.")
        if any(stream_id in numbers for numbers in self._skipped):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{frame} came for stream {stream_id}, which was skipped.")
