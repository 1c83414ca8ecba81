"""A client's connection, as far as its listener knows it."""

import asyncio
import fcntl
import struct
import termios
from typing import Protocol

ON_ITS_WAY = 0.5
"""Seconds in which a client that has connected, or has read a reply, may have sent a request that is not here yet."""
LEAVING = 3.0
"""The same where another process goes on, and nobody waits for this one's end: a client on a busy machine is slow."""


def may_be_asked(idle_since: float, now: float, on_its_way: float = ON_ITS_WAY) -> bool:
    """Whether a request of a client that has been idle since then may be on its way (`loop.time()` both)."""
    return now - idle_since < on_its_way


def close_unless_asked(transport: asyncio.Transport) -> None:
    """Close an idle connection, unless bytes stand in its socket that are read in the loop's next turn: its client has
    asked, and would be reset."""
    if not transport.is_closing():  # its descriptor may be another's now
        sock = transport.get_extra_info("socket")
        if sock is None or not _unread(sock.fileno()):
            transport.close()


def _unread(descriptor: int) -> int:
    """Bytes in the buffer of a socket that is open."""
    count: int = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0]
    return count


def forgiven(since: float, seconds: float, now: float) -> float:
    """The instant from which on time counts that began at `since`, where so many seconds do not count."""
    return min(since + seconds, now)


class Connection(Protocol):
    @property
    def idle_since(self) -> float | None:
        """`loop.time()` when its last request was answered, or when it began; None while a request is under way."""

    def forgive(self, seconds: float, now: float) -> None:
        """The server was held up for so long, and read nothing: none of its client's times goes on meanwhile.

        Called before `look`, with the same `now`.
        """

    def look(self, now: float) -> None:
        """Close it, or ask its client, if something has taken longer than the limits allow.

        Called about once a second with `loop.time()`, so that no connection needs timers of its own.
        """

    def shutdown(self, on_its_way: float = ON_ITS_WAY) -> None:
        """Take no further requests, and end with the last reply; an idle connection ends at once.

        To one that has been idle for a moment only, a request may be `on_its_way` (`may_be_asked`): it is answered, and
        is the last. Called again and again until the connection is gone.
        """

    def abort(self) -> None:
        """End it now, with all that is under way."""
