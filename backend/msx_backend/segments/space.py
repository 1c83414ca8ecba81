"""The shared memory of a stage's worker: its own segments, those of others that it reads, and the socket for both."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from math import prod
from typing import Any

from msx_backend.segments.pool import IDLE, SegmentPool
from msx_backend.segments.segment import Segment
from msx_backend.supervisor_line import replace
from msx_core.references import LEAST, Key
from msx_protocol.segments import (
    SegmentMade,
    SegmentMessage,
    SegmentRefused,
    SegmentsGone,
    SegmentsReturned,
    SegmentUse,
    check_segment,
    descriptors_exhausted,
    receive_segment_message,
    send_segment_message,
)

LATE = 1.0
"""Seconds that a descriptor may come after its request."""
TAKEN = 0.01
"""Seconds between two looks whether another thread has taken it from the socket."""
COLLECT_EVERY = 1.0
"""Seconds between two looks for cycles that keep arrays of requests which are answered."""


class SegmentSpace:
    """Thread-safe: the threads of a handler read and write values, the control thread calls `tick`."""

    def __init__(self, sock: socket.socket, use: SegmentUse) -> None:
        self._sock = sock
        self.owner = use.owner
        self.pool = SegmentPool(use.size, use.number, self._announce)
        self._lock = threading.Lock()
        self._mapped: dict[Key, mmap.mmap] = {}
        self._lost: dict[Key, str] = {}
        self._arrays: dict[int, weakref.ref[Any]] = {}
        """Arrays that a handler writes to, by their segments."""
        self._kept: dict[int, weakref.ref[Any]] = {}
        """Inputs that live longer than their requests, by the ids of these references."""
        self._returned: deque[Key] = deque()
        self._collected = 0.0

    # -- what a handler writes --

    def output(self, shape: tuple[int, ...], dtype: Any, *, ordinary: bool = False) -> Any:
        """An array in a segment, which is sent without a copy; an `ordinary` one where it is small, or at the bounds.

        Raises SegmentRefused.
        """
        import numpy as np

        size = prod(shape) * np.dtype(dtype).itemsize
        segment = self.take(size) if size > LEAST and not ordinary else None
        if segment is None:
            return np.empty(shape, dtype)
        whole = np.frombuffer(segment.memory, np.uint8)
        self._watch(segment.number, whole)
        return whole[:size].view(dtype).reshape(shape)

    def _watch(self, number: int, array: Any) -> None:
        self._arrays[number] = weakref.ref(array, lambda _: self.pool.dropped(number))

    def take(self, size: int) -> Segment | None:
        """See `SegmentPool.take`."""
        self.poll()
        segment = self.pool.take(size)
        self._tell_gone()
        return segment

    # -- what it reads --

    def memory(self, key: Key) -> mmap.mmap:
        """Memory of a segment whose descriptor came before the request. Raises SegmentRefused."""
        found = self._mapped.get(key)
        if found is None:
            self._arrives(key)
            found = self._mapped.get(key)
        if found is None:
            reason = self._lost.pop(key, "The value of another stage did not arrive: its shared memory is gone.")
            raise SegmentRefused(reason)
        return found

    def _arrives(self, key: Key) -> None:
        """Take messages until it is there: the server sends it later where the socket was full."""
        waiting = select.poll()
        waiting.register(self._sock, select.POLLIN)
        end = time.monotonic() + LATE
        while time.monotonic() < end:
            self.poll()
            if key in self._mapped or key in self._lost:
                return
            events = waiting.poll(TAKEN * 1000)
            if events and events[0][1] & (select.POLLHUP | select.POLLERR):
                return

    def returns(self, key: Key, array: Any = None) -> None:
        """A request that refers to it is over. It is given back when nothing refers to `array` any more."""
        if array is None:
            self._returned.append(key)
            return

        def dropped(it: weakref.ref[Any]) -> None:
            self._kept.pop(id(it), None)
            self._returned.append(key)

        reference = weakref.ref(array, dropped)
        self._kept[id(reference)] = reference

    def take_returned(self, *, collect: bool = True) -> list[Key]:
        """Segments given back since the last call. `collect`: garbage may be collected on this thread."""
        if collect and self._kept and time.monotonic() - self._collected > COLLECT_EVERY:
            self._collected = time.monotonic()
            gc.collect()  # the traceback of a failed call may hold its arrays
        taken = []
        while self._returned:  # mostly there is nothing, and an exception would cost each batch two microseconds
            try:
                taken.append(self._returned.popleft())
            except IndexError:
                break  # another thread has taken it
        return taken

    # -- the socket --

    def restart(self, end: int) -> None:
        """Go on with another frontend, by the descriptor of a new socket: it has no segments, and knows none."""
        with self._lock:
            replace(self._sock, end)
            self._mapped, self._lost = {}, {}
            self.pool.forget_all()

    def tick(self, idle: float = IDLE) -> None:
        """Called about once a second: segments that are idle go back to the system."""
        self.poll()
        self.pool.trim(idle)
        self._tell_gone()

    def poll(self) -> None:
        """Take the messages that are there."""
        with (
            self._lock,
            contextlib.suppress(EOFError, ConnectionError),
        ):  # the data socket tells that the server is gone
            while (received := receive_segment_message(self._sock)) is not None:
                self._take(*received)

    def _take(self, message: SegmentMessage, fd: int | None) -> None:
        if isinstance(message, SegmentMade):
            self._arrived(message, fd)
        elif isinstance(message, SegmentsReturned):
            for number, lends in zip(message.numbers, message.lends, strict=True):
                self.pool.returned(number, lends)
        else:
            self._gone(message)

    def _arrived(self, message: SegmentMade, fd: int | None) -> None:
        key = message.owner, message.number
        try:
            self._mapped[key] = mapped(fd, message.size)
            self._lost.pop(key, None)
        except SegmentRefused as error:
            self._lost[key] = str(error)
            self._send(SegmentsGone([message.number], message.owner))

    def _gone(self, message: SegmentsGone) -> None:
        for number in message.numbers:
            if message.owner == self.owner:
                self.pool.forget(number)
            else:
                self._mapped.pop((message.owner, number), None)

    def _announce(self, number: int, size: int, fd: int) -> None:
        try:
            self._send(SegmentMade(number, size), fd)
        finally:
            os.close(fd)

    def _tell_gone(self) -> None:
        if numbers := self.pool.take_gone():
            self._send(SegmentsGone(numbers))

    def _send(self, message: SegmentMessage, fd: int | None = None) -> None:
        with contextlib.suppress(ConnectionError):  # a frontend has crashed: another one may follow
            send_segment_message(self._sock, message, fd)


def mapped(fd: int | None, size: int) -> mmap.mmap:
    """A segment of another process, to be read; takes the descriptor. Raises SegmentRefused."""
    if fd is None:
        raise SegmentRefused(descriptors_exhausted("The worker could not take a value of another stage"))
    try:
        check_segment(fd, size)
        return mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    except OSError as error:
        raise SegmentRefused(f"The worker could not map a segment of {size} bytes: {error.strerror}.") from None
    finally:
        os.close(fd)
