"""Client's model of its connection, by the frames of both sides: what the server may send, and must not."""

from __future__ import annotations

from dataclasses import dataclass

from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.limits import DEFAULT_WINDOW, Limits
from tests.net.http2.peer import Frame

LARGEST = (1 << 31) - 1


@dataclass
class ModelStream:
    """By the client's side of it: `may_send` and `takes` are the windows of both directions, in bytes."""

    may_send: int
    takes: int
    sent: int = 0
    """Bytes of DATA without padding."""
    ended: bool = False
    """The client has said all, or has reset it."""
    gone: bool = False
    """The answer is complete, or one of both has reset the stream."""
    reset: bool = False
    """By the server."""
    begun: bool = False
    """The headers of the answer were there."""
    got: int = 0
    """Bytes of the answer."""

    @property
    def listened_to(self) -> bool:
        """The client may still say something."""
        return not self.ended and not self.reset


class Model:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.streams: dict[int, ModelStream] = {}
        self.may_send = limits.connection_window
        self.takes = DEFAULT_WINDOW
        self.initial = DEFAULT_WINDOW
        self.acks = 0
        """Acknowledgements of SETTINGS that are still to come."""
        self.pongs: list[bytes] = []

    @property
    def open(self) -> list[int]:
        return [number for number, stream in self.streams.items() if stream.listened_to]

    @property
    def answering(self) -> list[int]:
        return [number for number, stream in self.streams.items() if not stream.gone]

    def begin(self, ended: bool) -> int:
        number = max(self.streams, default=-1) + 2
        self.streams[number] = ModelStream(self.limits.stream_window, self.initial, ended=ended)
        return number

    def send(self, number: int, size: int, padding: int) -> None:
        stream = self.streams[number]
        stream.sent += size
        stream.may_send -= size + padding
        self.may_send -= size + padding

    def resize(self, window: int) -> None:
        for number in self.answering:
            self.streams[number].takes += window - self.initial
        self.initial = window
        self.acks += 1

    def hear(self, frame: Frame) -> None:
        """Raises AssertionError for what the server must not send."""
        assert frame.kind != frames.GOAWAY, frame.payload[8:]
        if frame.stream_id:
            self._hear_stream(frame, self.streams[frame.stream_id])
        elif frame.kind == frames.WINDOW_UPDATE:
            self.may_send += frame.number
            assert 0 < self.may_send <= self.limits.connection_window
        elif frame.kind == frames.SETTINGS:
            assert frame.flags == frames.ACK
            self.acks -= 1
        else:
            assert (frame.kind, frame.flags) == (frames.PING, frames.ACK)
            assert frame.payload == self.pongs.pop(0)

    def _hear_stream(self, frame: Frame, stream: ModelStream) -> None:
        if frame.kind == frames.WINDOW_UPDATE:
            stream.may_send += frame.number
            assert stream.listened_to, "it needs no window"
            assert stream.may_send <= self.limits.stream_window
            return
        if frame.kind == frames.RST_STREAM:
            if stream.gone:
                assert frame.number == ErrorCode.NO_ERROR, "the answer was complete before the request"
                assert stream.listened_to
            stream.gone = stream.reset = True
            return
        assert not stream.gone, "nothing comes behind the end"
        if frame.kind == frames.DATA:
            self._take(len(frame.payload), stream)
        else:
            assert frame.kind == frames.HEADERS
            stream.begun = True
        if frame.kind in (frames.DATA, frames.HEADERS) and frame.flags & frames.END_STREAM:
            stream.gone = True

    def _take(self, size: int, stream: ModelStream) -> None:
        assert stream.begun
        stream.got += size
        if size:
            stream.takes -= size
            self.takes -= size
            assert stream.takes >= 0
            assert self.takes >= 0
