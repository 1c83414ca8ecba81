"""The server's end of a stage worker's segment socket."""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Container, Iterable, Mapping
from itertools import chain

from msx_core.references import Key
from msx_core.service_errors import ServiceUnavailable
from msx_frontend.shared_value import SharedSegment, SharedValue
from msx_frontend.workers.segments.allowance import SegmentSocket
from msx_protocol.segments import (
    SegmentMade,
    SegmentMessage,
    SegmentsGone,
    SegmentsReturned,
    SegmentUse,
    descriptors_exhausted,
    receive_segment_message,
    send_segment_message,
)

log = logging.getLogger("msx.workers")

WHAT = "The server could not take a segment of a stage's shared memory"


class _Read:
    """One segment that a request refers to. `ended`: when the request was found to be over, and it was not given back;
    a `time.monotonic()` instant, or 0."""

    __slots__ = ("ended", "number", "segment")

    def __init__(self, segment: SharedSegment, number: int) -> None:
        self.segment, self.number, self.ended = segment, number, 0.0


class SegmentPort:
    """One worker: its own segments, which of others' it has, and which it reads now. Runs on the loop's thread."""

    def __init__(self, given: SegmentSocket) -> None:
        self._sock, self._limits, self.owner = given
        self._sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._own: dict[int, SharedSegment] = {}
        self._has: set[Key] = set()
        """Segments of others that were passed to this worker."""
        self._reads: dict[Key, list[_Read]] = {}
        self._unsent: deque[tuple[SegmentMessage, SharedSegment | None]] = deque()
        self._closed = False
        self._loop.add_reader(self._sock, self._readable)

    @property
    def use(self) -> SegmentUse:
        """Segment limits for the worker."""
        return SegmentUse(self.owner, self._limits.size, self._limits.number)

    @property
    def lent(self) -> int:
        """Own segments that somebody may still read."""
        return sum(segment.users > 0 for segment in self._own.values())

    @property
    def size(self) -> int:
        """Bytes of its own segments."""
        return sum(segment.size for segment in self._own.values())

    @property
    def reading(self) -> int:
        """Loans of others' segments to it that are not over."""
        return sum(map(len, self._reads.values()))

    def describe(self) -> dict[str, int]:
        return {"segments": len(self._own), "bytes": self.size, "lent": self.lent, "reads": self.reading}

    @property
    def may_lend(self) -> bool:
        """It has been granted segments of its own."""
        return self._limits.number > 0

    @property
    def at_rest(self) -> bool:
        """Nobody reads its segments, and it reads none."""
        return not (self.lent or self._reads)

    # -- as the owner --

    def value(self, keys: Iterable[Key], given: Mapping[Key, SharedSegment]) -> SharedValue:
        """Value that a reply of this worker refers to: its own segments, and those its request was `given`.

        Raises ServiceUnavailable for what did not arrive here.
        """
        segments, lost = [], False
        for key in keys:
            own = key[0] == self.owner
            if segment := self._found(key[1]) if own else given.get(key):
                segment.lends += own
                segments.append(segment)
            else:
                lost = True
        value = SharedValue(segments)
        if lost:
            value.close()
            raise ServiceUnavailable(descriptors_exhausted(WHAT))
        return value

    def give_back(self, segment: SharedSegment) -> None:
        lends, segment.lends = segment.lends, 0
        self._send(SegmentsReturned([segment.key[1]], [lends]))

    def _found(self, number: int) -> SharedSegment | None:
        if number not in self._own:
            self._readable()  # it was sent before the reply, on this other socket
        return self._own.get(number)

    # -- as a reader --

    def give(self, values: Iterable[SharedValue], number: int) -> list[Key]:
        """The request of this number is sent, whose fields refer to these; returns their segments, each once."""
        segments = {segment.key: segment for value in values for segment in value.segments}
        for key, segment in segments.items():
            if key not in self._has:
                self._pass(segment)
            segment.use()
            self._reads.setdefault(key, []).append(_Read(segment, number))
        return list(segments)

    def returned(self, keys: Iterable[Key]) -> None:
        """The worker refers to them no longer, once for each entry."""
        for key in keys:
            if reads := self._reads.get(key):
                read = reads.pop(0)
                if not reads:
                    del self._reads[key]
                read.segment.release()

    def kept(self, running: Container[int], now: float) -> float:
        """The most seconds for which the worker has kept a value of a request that is not running any more."""
        longest = 0.0
        for read in chain(*self._reads.values()):
            if read.number in running:
                continue
            read.ended = read.ended or now
            longest = max(longest, now - read.ended)
        return longest

    def _pass(self, segment: SharedSegment) -> None:
        owner, number = segment.key
        self._has.add(segment.key)
        segment.readers.add(self)
        self._send(SegmentMade(number, segment.size, owner), segment)

    def forget(self, key: Key) -> None:
        """Nobody will use this segment of another worker any more."""
        if key in self._has:
            self._has.discard(key)
            self._send(SegmentsGone([key[1]], key[0]))

    # -- the socket --

    def _readable(self) -> None:
        while not self._closed:
            try:
                received = receive_segment_message(self._sock)
            except (OSError, EOFError):
                self._loop.remove_reader(self._sock)
                return
            if received is None:
                return
            self._take(*received)

    def _take(self, message: SegmentMessage, fd: int | None) -> None:
        if isinstance(message, SegmentMade):
            self._arrived(message, fd)
        elif isinstance(message, SegmentsGone):
            for number in message.numbers:
                self._gone(number) if message.owner in (0, self.owner) else self._has.discard((message.owner, number))

    def _arrived(self, message: SegmentMade, fd: int | None) -> None:
        known = message.number in self._own or len(self._own) > self._limits.number
        if fd is not None and not known:
            self._own[message.number] = SharedSegment((self.owner, message.number), message.size, fd, self)
            return
        if fd is not None:
            os.close(fd)
        log.error("%s", descriptors_exhausted(WHAT))
        self._send(SegmentsGone([message.number], self.owner))

    def _gone(self, number: int) -> None:
        """It is not used any more, but by those who read it still."""
        if segment := self._own.pop(number, None):
            segment.orphan()

    def _send(self, message: SegmentMessage, segment: SharedSegment | None = None) -> None:
        """Does not wait: what does not fit into the socket is sent when there is room."""
        if self._closed:
            return
        if segment is not None:
            segment.use()  # its descriptor is kept until it was sent
        self._unsent.append((message, segment))
        if len(self._unsent) == 1:
            self._send_all()

    def _send_all(self) -> None:
        while self._unsent:
            message, segment = self._unsent[0]
            try:
                send_segment_message(self._sock, message, None if segment is None else segment.fd)
            except BlockingIOError:
                self._loop.add_writer(self._sock, self._writable)
                return
            except OSError:
                pass  # the worker is gone, which its other sockets tell
            self._unsent.popleft()
            if segment is not None:
                segment.release()

    def _writable(self) -> None:
        self._loop.remove_writer(self._sock)
        self._send_all()

    # -- another frontend follows --

    def forget_all(self) -> None:
        """Let a worker that is `at_rest`, and makes no segments now, forget its own, and those who have mapped them."""
        self._readable()
        if self._own:
            self._send(SegmentsGone([*self._own], self.owner))
        for number in list(self._own):
            self._gone(number)

    @property
    def unsent(self) -> int:
        """Messages that the kernel has not taken yet."""
        return len(self._unsent)

    def leave(self) -> socket.socket:
        """Give the socket to the caller, without the end of the worker."""
        copy = self._sock.dup()
        self.close()
        return copy

    # -- the end --

    def close(self) -> None:
        """The worker is gone: what it read is given back; what it owned stays for its readers. Idempotent."""
        if self._closed:
            return
        self._readable()
        self._closed = True
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        unsent, self._unsent = self._unsent, deque()
        reads, self._reads = self._reads, {}
        for segment in [one for _, one in unsent if one] + [read.segment for read in chain(*reads.values())]:
            segment.release()
        for number in list(self._own):
            self._gone(number)
