"""The segments that this process owns: lent by number, given back, and used again."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain

from msx_backend.segments.segment import Segment, class_size, make_segment

IDLE = 60.0
"""Seconds after which a segment that nobody has used goes back to the system."""

Announce = Callable[[int, int, int], None]
"""Called with number, size and descriptor of each segment that is made."""


class SegmentPool:
    """Thread-safe. In powers of two, because the pages of a fresh segment cost more than to copy what fills them.

    `most_bytes` and `most_segments` bound what there is of them, in use or not.
    """

    def __init__(self, most_bytes: int, most_segments: int, announce: Announce) -> None:
        self._most_bytes, self._most_segments = most_bytes, most_segments
        self._announce = announce
        self._lock = threading.Lock()
        self._unwritten: deque[int] = deque()
        self._all: dict[int, Segment] = {}
        self._free: dict[int, list[Segment]] = {}
        self._newest = 0
        self._gone: list[int] = []
        self.size = 0
        """Bytes of all segments."""

    def __len__(self) -> int:
        return len(self._all)

    @property
    def in_use(self) -> int:
        """Segments that are lent or written to."""
        with self._lock:
            self._settle()
            return len(self._all) - sum(map(len, self._free.values()))

    def take(self, size: int) -> Segment | None:
        """A segment of at least so many bytes, `written`; None at the bounds. Raises SegmentRefused."""
        with self._lock:
            self._settle()
            wanted = class_size(size)
            free = self._free.get(wanted)
            segment = free.pop() if free else self._made(wanted)
            if segment is not None:
                segment.written = True
            return segment

    def lend(self, number: int) -> None:
        with self._lock:
            if segment := self._all.get(number):
                segment.lent += 1

    def returned(self, number: int, lends: int) -> None:
        """So many loans of it are over. A number that is not known is ignored: the segment was lost on its way."""
        with self._lock:
            if (segment := self._all.get(number)) and segment.lent:
                segment.lent = max(0, segment.lent - lends)
                self._put_back(segment)

    def dropped(self, number: int) -> None:
        """Nobody writes to it any more. Takes no lock: an array may be dropped at any line, of any thread."""
        self._unwritten.append(number)

    def forget(self, number: int) -> None:
        """It did not reach the server, so that nobody else can use it."""
        with self._lock:
            if segment := self._all.pop(number, None):
                self.size -= segment.size
                if segment.free:
                    self._free[segment.size].remove(segment)

    def forget_all(self) -> None:
        """Another frontend follows one that has crashed, and knows none of them. Readers and handlers keep what they
        have mapped."""
        with self._lock:
            self._all, self._free, self._gone, self.size = {}, {}, [], 0

    def find(self, address: int, size: int) -> Segment | None:
        """The one that is written to and has these bytes."""
        with self._lock:
            for segment in self._all.values():
                if segment.written and segment.holds(address, size):
                    return segment
            return None

    def trim(self, idle: float = IDLE) -> None:
        """Segments that were free for so many seconds go back to the system."""
        with self._lock:
            self._settle()
            oldest = time.monotonic() - idle
            for segment in [one for one in chain(*self._free.values()) if one.freed <= oldest]:
                self._drop(segment)

    def take_gone(self) -> list[int]:
        """The numbers of those that went back to the system since the last call. They are never used again."""
        with self._lock:
            gone, self._gone = self._gone, []
            return gone

    def _made(self, size: int) -> Segment | None:
        """A new one; free ones of other sizes make room for it, those that were free for the longest first."""
        unused = self._unused()
        while len(self._all) >= self._most_segments or self.size + size > self._most_bytes:
            if size > self._most_bytes or (oldest := next(unused, None)) is None:
                return None
            self._drop(oldest)
        self._newest += 1
        segment, fd = make_segment(self._newest, size)
        self._all[segment.number] = segment
        self.size += size
        self._announce(segment.number, size, fd)
        return segment

    def _unused(self) -> Iterator[Segment]:
        return iter(sorted(chain(*self._free.values()), key=lambda segment: segment.freed))

    def _settle(self) -> None:
        while self._unwritten:
            if (segment := self._all.get(self._unwritten.popleft())) and segment.written:
                segment.written = False
                self._put_back(segment)

    def _put_back(self, segment: Segment) -> None:
        if segment.free:
            segment.freed = time.monotonic()
            self._free.setdefault(segment.size, []).append(segment)

    def _drop(self, segment: Segment) -> None:
        self._free[segment.size].remove(segment)
        del self._all[segment.number]
        self.size -= segment.size
        self._gone.append(segment.number)
