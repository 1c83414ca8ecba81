"""A socket that goes on listening for those who are there already.

To close one resets all that wait in its queue, and between the last accept(2) and close(2) there is time to get into
it: whoever does is reset instead of refused.
"""

import contextlib
import ctypes
import socket
import struct

_SO_ATTACH_FILTER = 26
"""Option of Linux on x86 and ARM; the module `socket` does not name it."""

_DROP_SYN = ((0x30, 0, 0, 13), (0x45, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))
"""Load the flags of the TCP header; if there is SYN, drop the packet; else it passes (classic BPF: linux/filter.h)."""


def refuse_new(sock: socket.socket) -> None:
    """Let nobody into its queue from now on who has not begun to connect; what is in it can be accepted.

    The kernel of a client that tries asks again after a second (RFC 6298 §2.1): the socket is closed then, and it is
    refused, or another process listens there. A kernel that has no filters leaves the socket as it is.
    """
    with contextlib.suppress(OSError):
        if sock.family == socket.AF_UNIX:
            sock.shutdown(socket.SHUT_RD)
        else:
            _attach(sock)


def _attach(sock: socket.socket) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in _DROP_SYN))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_DROP_SYN), ctypes.addressof(code)))
