"""One stream: a request that comes in and its answer, with the windows of both."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from msx_net.http2.errors import ErrorCode
from msx_net.http2.flow_control import StreamWindows
from msx_net.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEAD,
    HEADERS,
    header_frames,
    rst_stream,
    window_update,
)
from msx_net.http2.output import Output
from msx_net.http2.stream_events import StreamEvents

DRIBBLE = 256
"""Bytes: a frame that the client's windows made shorter earns it no frames of its own (CVE-2019-9511)."""

_pack = HEAD.pack


class OpenStreams(Protocol):
    """The streams of one connection, as far as one of them knows them."""

    def close(self, stream: Stream) -> None:
        """The answer is complete."""

    def reset(self, stream: Stream, code: ErrorCode) -> None:
        """The owner gives the stream up."""


class Stream(StreamWindows):
    """The owner calls what stands up to `consumed`; the rest is for the connection."""

    __slots__ = (
        "_finished",
        "_flow",
        "_output",
        "_queue",
        "_streams",
        "dropped",
        "dropped_until",
        "events",
        "expected",
        "in_line",
        "remote_ended",
    )

    def __init__(
        self, stream_id: int, streams: OpenStreams, output: Output, expected: int | None, remote_ended: bool
    ) -> None:
        self._streams = streams
        self._output = output
        flow = self._flow = output.flow
        self.id = stream_id
        self.send_window = flow.initial_send_window
        self.receive_window = self.allowed = flow.limits.stream_window
        self.unannounced = 0
        self.held = 0
        self.events: StreamEvents | None = None
        self.expected = expected
        """Bytes of the body that are still to come, where its length was said."""
        self.remote_ended = remote_ended
        self._queue: deque[tuple[int, int, bytes | memoryview]] | None = None
        self.dropped_until = 0
        """Where the answer was complete before the request: how many bytes of it are read at most."""
        self.dropped = -1
        """How many had come at the last look."""
        self.in_line = False
        """It waits for the connection."""
        self._finished = False

    # -- what the owner calls --

    @property
    def blocked(self) -> bool:
        """Something waits for the client's window or for the transport: who streams waits for `drained`."""
        return bool(self._queue)

    @property
    def finished(self) -> bool:
        """Nothing more can be sent: the answer is complete, or the stream is lost. All `send_…` do nothing then."""
        return self._finished

    def send_headers(self, block: bytes, *, end: bool = False) -> None:
        """A block of `encode_headers`; with `end` it is the whole answer."""
        self._send(HEADERS, END_STREAM if end else 0, block)

    def send_data(self, data: bytes, *, end: bool = False) -> None:
        """Send data; with `end` it is the last of an answer without trailers, and may be empty."""
        size = len(data)
        if self._finished or not (size or end):
            return
        if end or not self._fits(size):
            self._send(DATA, END_STREAM if end else 0, data)
        else:
            self._flow.send(self, size)
            self._output.put(_pack(size >> 8, size & 0xFF, DATA, 0, self.id), data)

    def send_trailers(self, block: bytes) -> None:
        """Ends the answer."""
        self._send(HEADERS, END_STREAM, block)

    def send_whole(self, headers: bytes, data: bytes, trailers: bytes = b"") -> None:
        """A whole answer, in one piece where the windows allow it; without trailers if they are empty."""
        size = len(data)
        if not size or self._finished or not self._fits(max(size, len(headers), len(trailers))):
            self._send_in_frames(headers, data, trailers)
            return
        self._flow.send(self, size)
        frames = (
            _pack(len(headers) >> 8, len(headers) & 0xFF, HEADERS, END_HEADERS, self.id)
            + headers
            + _pack(size >> 8, size & 0xFF, DATA, 0 if trailers else END_STREAM, self.id)
            + data
        )
        if trailers:
            frames += _pack(len(trailers) >> 8, len(trailers) & 0xFF, HEADERS, END_HEADERS | END_STREAM, self.id)
            frames += trailers
        self._output.put(frames)
        self._finished = True
        self._close()

    def _send_in_frames(self, headers: bytes, data: bytes, trailers: bytes) -> None:
        self.send_headers(headers, end=not data and not trailers)
        self.send_data(data, end=not trailers)
        if trailers:
            self.send_trailers(trailers)

    def reset(self, code: ErrorCode) -> None:
        """Ends the stream at once; what waited is dropped."""
        if not self._finished or self._queue:
            self.forget()
            self._streams.reset(self, code)

    def consumed(self, size: int) -> None:
        """So many bytes of the body are no longer held: the client may send more."""
        size = self._flow.release(self, size)
        if not self.remote_ended:
            self.grant(size)

    # -- what comes in --

    def grant(self, size: int) -> None:
        """The client may send so many bytes more."""
        increment = self._flow.grant(self, size)
        if increment:
            self._output.control(window_update(self.id, increment))

    def widen(self, increment: int) -> None:
        """Raises StreamFault."""
        self._flow.widen_stream(self, increment)
        if self._queue:
            self._output.wake(self)

    # -- what goes out --

    def _fits(self, size: int) -> bool:
        """A frame with so many bytes can be sent now."""
        output = self._output
        return (
            not self._queue
            and not output.paused
            and size <= min(self.send_window, self._flow.send_window, output.max_frame)
        )

    def _send(self, kind: int, flags: int, payload: bytes) -> None:
        if self._finished:
            return
        self._finished = bool(flags & END_STREAM)
        if self._queue is None:
            self._queue = deque()
        self._queue.append((kind, flags, payload))
        if len(self._queue) == 1:
            self._output.offer(self)
            self._close_if_done()

    @property
    def needs_window(self) -> bool:
        """Whether bytes of a body are the first to wait."""
        if not self._queue:
            return False
        kind, _, payload = self._queue[0]
        return kind == DATA and len(payload) > 0

    @property
    def sendable(self) -> bool:
        """As far as its own window goes."""
        return bool(self._queue) and (self.send_window > 0 or not self.needs_window)

    def advance(self) -> int:
        """Sends one frame, and returns how many bytes it has."""
        assert self._queue
        kind, flags, payload = self._queue.popleft()
        output = self._output
        if kind == HEADERS:
            frames = header_frames(self.id, bytes(payload), end=bool(flags & END_STREAM), max_size=output.max_frame)
            output.put(frames)
            return len(frames)
        size = min(len(payload), max(0, min(self.send_window, self._flow.send_window, output.max_frame)))
        if size < len(payload):
            view = memoryview(payload)
            payload = view[:size]
            self._queue.appendleft((DATA, flags, view[size:]))
            flags = 0
            if size < DRIBBLE:
                self._flow.sent_frames -= 1
        self._flow.send(self, size)
        output.put(_pack(size >> 8, size & 0xFF, DATA, flags, self.id), payload)
        return size

    def emptied(self) -> None:
        """Nothing waits any more."""
        if not self._close_if_done() and self.events is not None:
            self.events.drained()

    def _close_if_done(self) -> bool:
        if self._finished and not self._queue:
            self._close()
        return self._finished

    def _close(self) -> None:
        """The answer is complete; a client that has not said all need not go on (RFC 9113 §8.1).

        It is told so at once, or once it has sent `max_refused_body` more: some clients read no answer before they have
        sent all, and others take a stream that is reset for one without an answer.
        """
        if self.remote_ended:
            self._streams.close(self)
        elif rest := self._flow.limits.max_refused_body:
            self.dropped_until = self.received + rest
            self.consumed(self.held)
        else:
            self.end_reading()

    def end_reading(self) -> None:
        """The answer is complete, and nothing more is read of the request."""
        self._output.control(rst_stream(self.id, ErrorCode.NO_ERROR))
        self._streams.close(self)

    def drop(self, size: int) -> None:
        """So many bytes came of a request whose answer is complete."""
        if not self.dropped_until:
            self.grant(size)
        elif self.remote_ended:
            self._streams.close(self)
        elif self.received >= self.dropped_until:
            self.end_reading()
        else:
            self.grant(size)

    def forget(self) -> None:
        """Drops what waited; the owner hears no more."""
        self._finished = True
        if self._queue:
            self._queue.clear()
            self._output.stall.done(self)
