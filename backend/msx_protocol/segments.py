"""The third socket of a stage's worker: segments of shared memory, of which values between stages are made.

A Unix socket that keeps the bounds of messages, because descriptors travel on it: a worker passes the descriptor of
each segment that it makes to the server once, before the reply that refers to it, and the server passes it on once to
each worker that reads it, before the request. After that a segment is named by its owner and its number. The server
never maps one.
"""

import array
import fcntl
import os
import resource
import socket

import msgspec

from msx_protocol.message import WireMessage

OFFERED = hasattr(os, "memfd_create")
"""The system has such segments: Linux."""

FUTURE_WRITE = 0x10
"""F_SEAL_FUTURE_WRITE (Linux 5.1): nobody can map it writable any more; the owner's mapping stays as it is."""
NO_RESIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW if OFFERED else 0

MOST = 1 << 16
"""Bytes of a message on this socket."""


class SegmentMade(WireMessage, tag=1):
    """`size` is in bytes. The segment's descriptor comes with it. `owner` is what `SegmentUse` gave it."""

    number: int
    size: int
    owner: int = 0


class SegmentsGone(WireMessage, tag=2):
    """Tells that segments are gone. From the owner, and on to its readers: they are not used any more. From a reader:
    it does not have them. From the server to the owner: they did not arrive there."""

    numbers: list[int]
    owner: int = 0


class SegmentsReturned(WireMessage, tag=3):
    """Tells the owner that nobody reads them any more. `lends` counts, for each, the loans that this ends."""

    numbers: list[int]
    lends: list[int]


class SegmentUse(WireMessage):
    """Segments that a worker may use, in Load. `size`: bytes of all its segments; `number`: how many there may be."""

    owner: int
    size: int
    number: int


SegmentMessage = SegmentMade | SegmentsGone | SegmentsReturned


class SegmentRefused(Exception):
    """A segment that cannot be used; the message says why."""


def send_segment_message(sock: socket.socket, message: SegmentMessage, fd: int | None = None) -> None:
    """Raises OSError; BlockingIOError where the socket does not block and is full."""
    passed = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    sock.sendmsg([_encode(message)], passed)


def receive_segment_message(sock: socket.socket) -> tuple[SegmentMessage, int | None] | None:
    """The next message and its descriptor, which belongs to the caller; None where the socket does not block and
    holds nothing.

    The descriptor of a SegmentMade is None where this process may not have another one: recvmsg(2) raises nothing then.
    Raises OSError; EOFError at the end.
    """
    try:
        data, passed, _, _ = sock.recvmsg(MOST, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    if not data:
        raise EOFError
    fd = next((int.from_bytes(fds[:4], "little") for _, kind, fds in passed if kind == socket.SCM_RIGHTS), None)
    return _decode(data), fd


def descriptors_exhausted(what: str) -> str:
    """A sentence for a process that may not open another descriptor."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return f"{what}: its limit of open files ({limit}) is reached. Raise it (ulimit -n), or lower sharedSegments."


def seal(fd: int) -> None:
    """Nobody can resize the segment any more, nor map it writable, nor undo that. Raises OSError."""
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, NO_RESIZE | FUTURE_WRITE)
    except OSError:  # an older kernel
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, NO_RESIZE)


def check_segment(fd: int, size: int) -> None:
    """A process that truncates a segment could make its readers fault. Raises SegmentRefused."""
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError:
        raise SegmentRefused("A segment of shared memory was refused: it is not a memfd.") from None
    if seals & NO_RESIZE != NO_RESIZE:
        raise SegmentRefused("A segment of shared memory was refused: it may be resized.")
    if (found := os.fstat(fd).st_size) != size:
        raise SegmentRefused(f"A segment of shared memory was refused: it has {found} bytes, not {size}.")


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SegmentMessage).decode
