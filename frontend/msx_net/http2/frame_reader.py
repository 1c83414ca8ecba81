"""The bytes of a connection, cut into frames; a client that sends many at once does not keep the loop."""

import asyncio
import sys
from abc import abstractmethod
from time import perf_counter

from msx_net.connections import turns
from msx_net.http2.errors import ConnectionFault, ErrorCode
from msx_net.http2.frames import HEAD, HEAD_SIZE, ID_MASK
from msx_net.http2.limits import Limits
from msx_net.http2.preface import NotHttp2
from msx_net.http2.receiver import Receiver

_CLOCK = 1_024
"""Bytes after which the clock is read: a fifth of a millisecond of small frames."""

_unpack = HEAD.unpack_from


class IncomingFrames(asyncio.Protocol):
    """The part of a connection that is asked for each frame."""

    _receiver: Receiver
    _transport: asyncio.Transport

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._heard = False
        """Something has come since the last look."""
        self._begun = False
        """The client's preface was there."""
        self._over = False
        """Nothing that comes in counts any more."""
        self._waiting = False
        """The rest waits for the loop's next turn."""
        self._rest: list[bytes] = []
        self._held = 0
        self._needed = 1
        """Bytes in `rest`, and how many there have to be before it makes sense to look at them."""

    # -- what the connection does --

    @abstractmethod
    def _begin(self, data: bytes) -> bytes:
        """The first bytes; returns what stands behind the preface. Raises NotHttp2."""

    @abstractmethod
    def _fail(self, fault: ConnectionFault) -> None:
        """Ends the connection."""

    @abstractmethod
    def _end(self, last_words: bytes) -> None:
        """The same, without a fault of HTTP/2."""

    # -- bytes --

    def data_received(self, data: bytes) -> None:
        self._heard = True
        if self._rest or len(data) < self._needed:
            self._keep(data)
            if self._held < self._needed:
                return
            data = self._take()
        if not self._over:
            self._parse(data)

    def _keep(self, data: bytes) -> None:
        self._rest.append(data)
        self._held += len(data)

    def _take(self) -> bytes:
        data = b"".join(self._rest)
        self._rest.clear()
        self._held = 0
        return data

    def _parse(self, data: bytes) -> None:
        try:
            if not self._begun:
                data = self._begin(data)
            self._read_frames(data)
        except ConnectionFault as fault:
            self._fail(fault)
        except NotHttp2 as stranger:
            self._end(stranger.answer)

    def _read_frames(self, data: bytes) -> None:
        start, end = 0, len(data)
        receiver, largest = self._receiver, self._limits.max_frame_size
        self._needed = HEAD_SIZE
        look = _CLOCK
        began = perf_counter() if end > look else 0.0
        while end - start >= HEAD_SIZE:
            if start >= look:
                if perf_counter() - began > turns.TURN:
                    self._wait()
                    break
                look = start + _CLOCK
            high, low, kind, flags, stream_id = _unpack(data, start)
            size = high << 8 | low
            if size > largest:
                text = f"A frame has at most {largest} bytes (SETTINGS_MAX_FRAME_SIZE), not {size}."
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, text)
            body = start + HEAD_SIZE
            start = body + size
            if start > end:
                start = body - HEAD_SIZE
                self._needed = HEAD_SIZE + size
                break
            receiver.handlers.get(kind, receiver.unexpected)(flags, stream_id & ID_MASK, data[body:start])
        if start < end:
            self._keep(data[start:])

    def _wait(self) -> None:
        """Wait for the next turn; until then nothing more is read."""
        self._waiting, self._needed = True, sys.maxsize
        turns.after_others(asyncio.get_running_loop(), self._go_on)
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def _go_on(self) -> None:
        self._waiting = False
        data = self._take()
        if not self._over:
            self._parse(data)
        if not self._waiting and not self._transport.is_closing():
            self._transport.resume_reading()

    def _partial(self) -> tuple[int, int, int]:
        """Kind, stream and bytes of the frame that is not complete; zeros where its head is not there."""
        if self._held < HEAD_SIZE or self._waiting:
            return 0, 0, 0
        _, _, kind, _, stream_id = _unpack(b"".join(self._rest[:HEAD_SIZE]))
        return kind, stream_id & ID_MASK, self._held
