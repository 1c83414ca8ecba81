"""Effect of each frame of the client (RFC 9113 §6)."""

from collections.abc import Callable

from msx_net.http2.errors import ConnectionFault, ErrorCode, StreamFault
from msx_net.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    ID_MASK,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    check_priority,
    frame,
)
from msx_net.http2.requests import Accept, Requests
from msx_net.http2.settings import INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, parse_settings
from msx_net.http2.streams import Streams

Handler = Callable[[int, int, bytes], None]


class Receiver:
    """`handlers` take a frame's flags, stream and payload, and raise ConnectionFault.

    `on_settled` hears of the client's first SETTINGS, `on_pong` of what PING was answered.
    """

    def __init__(
        self, streams: Streams, accept: Accept, on_settled: Callable[[], None], on_pong: Callable[[bytes], None]
    ) -> None:
        self._streams, self._output = streams, streams.output
        self._on_settled, self._on_pong = on_settled, on_pong
        self.requests = Requests(streams, accept, self._expect)
        self._all: dict[int, Handler] = {
            DATA: self.requests.data,
            HEADERS: self.requests.headers,
            PRIORITY: self._priority,
            RST_STREAM: self._rst_stream,
            SETTINGS: self._settings,
            PUSH_PROMISE: self._push_promise,
            PING: self._ping,
            GOAWAY: self._goaway,
            WINDOW_UPDATE: self._window_update,
            CONTINUATION: self.requests.continuation,
        }
        self.settled = False
        """The client's SETTINGS were there."""
        self.handlers: dict[int, Handler] = {SETTINGS: self._settings}

    def unexpected(self, flags: int, stream_id: int, payload: bytes) -> None:
        """A kind of frame that `handlers` does not have: unknown ones do nothing, where any may come."""
        if self.handlers is not self._all:
            text = "Only CONTINUATION may follow HEADERS." if self.settled else "SETTINGS has to be the first frame."
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, text)
        self._streams.flood.frame()

    def _expect(self, kind: int | None) -> None:
        self.handlers = self._all if kind is None else {kind: self._all[kind]}

    # -- frames of streams --

    def _priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        """Nothing is done with it (RFC 9113 §5.3.2)."""
        _check_stream("PRIORITY", stream_id)
        check_priority(stream_id, payload)
        self._streams.flood.frame()

    def _rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_stream("RST_STREAM", stream_id)
        _check_size("RST_STREAM", payload, 4)
        stream = self._streams.open.get(stream_id)
        if stream is None:
            self._streams.flood.frame()
            self._streams.check_begun(stream_id, "RST_STREAM")
            self._streams.client_ended(stream_id)
        else:
            self._streams.flood.reset()
            code = ErrorCode.named(int.from_bytes(payload, "big"))
            self._streams.lose(stream, f"the client reset the stream ({code})")

    def _push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "A client cannot push.")

    def _window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("WINDOW_UPDATE", payload, 4)
        self._streams.flood.frame()
        increment = int.from_bytes(payload, "big") & ID_MASK
        if stream_id:
            self._widen(stream_id, increment)
        elif increment:
            self._output.widen(increment)
        else:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "A window cannot grow by 0.")

    def _widen(self, stream_id: int, increment: int) -> None:
        stream = self._streams.open.get(stream_id)
        if stream is None:
            self._streams.check_begun(stream_id, "WINDOW_UPDATE")
            if not increment:
                self._streams.flood.reset()
                self._streams.refuse(stream_id, ErrorCode.PROTOCOL_ERROR)
            return
        try:
            if not increment:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "A window cannot grow by 0.")
            stream.widen(increment)
        except StreamFault as fault:
            self._streams.fail(stream, fault)

    # -- frames of the connection --

    def _settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection("SETTINGS", stream_id)
        if not self.settled:
            self._begin(flags)
        self._streams.flood.settings()
        if flags & ACK:
            _check_size("SETTINGS with ACK", payload, 0)
            return
        entries = parse_settings(payload)
        self._output.control(frame(SETTINGS, ACK, 0))  # before what it allows, as gRPC's clients need it
        for name, value in entries.items():
            if name == INITIAL_WINDOW_SIZE:
                self._streams.resize(value)
            elif name == MAX_FRAME_SIZE:
                self._output.max_frame = value

    def _begin(self, flags: int) -> None:
        if flags & ACK:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "The first SETTINGS of a client is not an ACK.")
        self.settled = True
        self._expect(None)
        self._on_settled()

    def _ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_connection("PING", stream_id)
        _check_size("PING", payload, 8)
        self._streams.flood.frame()
        if flags & ACK:
            self._on_pong(payload)
        else:
            self._output.control(frame(PING, ACK, 0, payload))

    def _goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        """It is about streams that we begin, and we begin none."""
        _check_connection("GOAWAY", stream_id)
        if len(payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"GOAWAY has at least 8 bytes, not {len(payload)}.")
        self._streams.flood.frame()


def _check_size(name: str, payload: bytes, size: int) -> None:
    if len(payload) != size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{name} has {size} bytes, not {len(payload)}.")


def _check_connection(name: str, stream_id: int) -> None:
    if stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{name} belongs to the connection, not to stream {stream_id}.")


def _check_stream(name: str, stream_id: int) -> None:
    if not stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{name} belongs to a stream, not to the connection.")
