"""Flow control (RFC 9113 §5.2): how many bytes of bodies each side may send, and how many of them are held here."""

from msx_net.http2.errors import ConnectionFault, ErrorCode, StreamFault
from msx_net.http2.limits import DEFAULT_WINDOW, LARGEST_WINDOW, Limits


class StreamWindows:
    """The numbers of one stream, in bytes, which only FlowControl changes.

    A base class of the stream: an object of its own would cost each request its part.
    """

    __slots__ = ("allowed", "held", "id", "receive_window", "send_window", "unannounced")

    id: int
    send_window: int
    """Bytes that the client still takes. Negative after the client made its windows smaller."""
    receive_window: int
    """Bytes that the client may still send."""
    allowed: int
    """Bytes that the client was ever allowed to send."""
    unannounced: int
    """Bytes that the client may send in addition, once WINDOW_UPDATE tells it."""
    held: int
    """Bytes of the request's body that have been received, and not consumed by the stream's owner."""

    @property
    def received(self) -> int:
        """Bytes of the request's body, with padding."""
        return self.allowed - self.receive_window


class FlowControl:
    """The windows of one connection in both directions. It does no input or output.

    Where a method returns a number of bytes, the caller sends a WINDOW_UPDATE with it, unless it is 0: windows are
    given back in large pieces.
    """

    __slots__ = (
        "held",
        "initial_send_window",
        "limits",
        "receive_window",
        "send_window",
        "sent_frames",
        "unannounced",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.send_window = DEFAULT_WINDOW
        """Bytes that the client still takes, of all streams together."""
        self.initial_send_window = DEFAULT_WINDOW
        """Window of new streams: the client's SETTINGS_INITIAL_WINDOW_SIZE."""
        self.receive_window = limits.connection_window
        self.unannounced = 0
        self.held = 0
        """Bytes held for all streams together."""
        self.sent_frames = 0
        """DATA frames of answers."""

    # -- what is sent --

    def send(self, stream: StreamWindows, size: int) -> None:
        """A DATA frame of the answer with `size` bytes."""
        stream.send_window -= size
        self.send_window -= size
        self.sent_frames += 1

    def widen(self, increment: int) -> None:
        """The client's WINDOW_UPDATE for the connection. Raises ConnectionFault."""
        self.send_window += increment
        if self.send_window > LARGEST_WINDOW:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR, f"The connection's window is at most {LARGEST_WINDOW} bytes."
            )

    def widen_stream(self, stream: StreamWindows, increment: int) -> None:
        """The client's WINDOW_UPDATE for a stream, or a change of its settings. Raises StreamFault."""
        stream.send_window += increment
        if stream.send_window > LARGEST_WINDOW:
            raise StreamFault(
                ErrorCode.FLOW_CONTROL_ERROR, f"The window of stream {stream.id} is at most {LARGEST_WINDOW} bytes."
            )

    def resize(self, window: int) -> int:
        """The client's SETTINGS_INITIAL_WINDOW_SIZE. Returns by how much the windows of open streams grow."""
        change, self.initial_send_window = window - self.initial_send_window, window
        return change

    # -- what is received --

    def receive(self, size: int) -> int:
        """A DATA frame of any stream, with its padding. Returns what to add to the connection's window, which is
        given back before the body is consumed: otherwise streams would wait for each other. Raises ConnectionFault.
        """
        self.receive_window -= size
        if self.receive_window < 0:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR, "More was sent than the connection's window: wait for WINDOW_UPDATE."
            )
        self.unannounced += size
        if self.unannounced < self.limits.connection_window >> 1:
            return 0
        increment, self.unannounced = self.unannounced, 0
        self.receive_window += increment
        return increment

    def receive_for(self, stream: StreamWindows, size: int) -> None:
        """The same frame, where its stream is open. Raises StreamFault."""
        stream.receive_window -= size
        if stream.receive_window < 0:
            raise StreamFault(
                ErrorCode.FLOW_CONTROL_ERROR, f"Stream {stream.id} sent more than its window: wait for WINDOW_UPDATE."
            )

    def grant(self, stream: StreamWindows, size: int) -> int:
        """Returns what to add to the stream's window."""
        stream.unannounced += size
        if stream.unannounced < self.limits.stream_window >> 1:
            return 0
        increment, stream.unannounced = stream.unannounced, 0
        stream.receive_window += increment
        stream.allowed += increment
        return increment

    # -- what is held --

    def hold(self, stream: StreamWindows, size: int) -> None:
        """Raises StreamFault above the limit of the connection. To wait for room could be to wait for ever: the other
        streams may wait for this one.
        """
        stream.held += size
        self.held += size
        if self.held > self.limits.max_held:
            raise StreamFault(
                ErrorCode.ENHANCE_YOUR_CALM,
                f"The requests of this connection hold more than {self.limits.max_held} bytes: send fewer at once.",
            )

    def release(self, stream: StreamWindows, size: int) -> int:
        """Returns how much of `size` was held: nothing is held of a stream that is closed."""
        if size > stream.held:
            size = stream.held
        stream.held -= size
        self.held -= size
        return size
