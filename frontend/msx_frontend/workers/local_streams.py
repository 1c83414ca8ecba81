"""The connections to a process of this machine: sockets and pipes, of which it inherits the other ends."""

import asyncio
import os
import socket
from contextlib import ExitStack

from msx_frontend.workers.segments.allowance import SegmentAllowance, SegmentLimits, SegmentSocket, next_owner
from msx_protocol.segments import OFFERED


class SocketStream:
    """Our end of a pair of Unix sockets."""

    def __init__(self, end: socket.socket) -> None:
        self._end: socket.socket | None = end

    async def connect(self, reader: asyncio.BaseProtocol) -> None:
        end, self._end = self._end, None
        if end is None:
            raise ConnectionError("The process has ended.")
        await asyncio.get_running_loop().create_unix_connection(lambda: reader, sock=end)

    def close(self) -> None:
        """Unless it was connected: then its reader closes it."""
        if self._end is not None:
            self._end.close()
            self._end = None


class PipeStream:
    """The end of a pipe that can be read."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    async def connect(self, reader: asyncio.BaseProtocol) -> None:
        fd, self._fd = self._fd, None
        if fd is None:
            raise ConnectionError("The process has ended.")
        await asyncio.get_running_loop().connect_read_pipe(lambda: reader, os.fdopen(fd, "rb", 0))

    def close(self) -> None:
        """Unless it was connected: then its reader closes it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def socket_pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, int]:
    """Our end, and the descriptor of the process's; each is closed by its stack."""
    end, other = socket.socketpair()
    ours.enter_context(end)
    return end, theirs.enter_context(other).fileno()


def segment_socket(
    ours: ExitStack, theirs: ExitStack, wanted: SegmentLimits | None, allowance: SegmentAllowance
) -> tuple[SegmentSocket, int] | None:
    """Our end, and the descriptor of the process's; None for a worker that is no stage's, and where the system has no
    such memory.

    A worker that is granted nothing has the socket, too: the stages before it refer to segments, which it reads.
    """
    if wanted is None or not OFFERED:
        return None
    granted = allowance.take(wanted)
    ours.callback(allowance.put_back, granted)
    end, fd = segment_pair(ours, theirs)
    return SegmentSocket(end, granted, next_owner()), fd


def segment_pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, int]:
    """Our end, and the descriptor of the process's, of a socket that keeps the bounds of messages."""
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.enter_context(end)
    return end, theirs.enter_context(other).fileno()


def pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    """The end to read, and the process's, to write; each is closed by its stack."""
    read, write = os.pipe()
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    return read, write
