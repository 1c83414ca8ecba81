"""Sockets that listen."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

BACKLOG = 65_535
"""Connections that wait in the kernel until they are accepted, as far as net.core.somaxconn allows. Where they are
more, the kernel answers with SYN cookies, and resets some that it had taken."""
TRIES = 20
"""Tries to find a port that is free on all addresses of a host."""
NO_NAME = "this is no name of a host: a part between two dots has 1 to 63 characters"


@contextlib.contextmanager
def _named_host() -> Iterator[None]:
    """Names of hosts are encoded before they are looked up. Raises OSError for one that cannot be."""
    try:
        yield
    except UnicodeError:
        raise OSError(errno.EINVAL, NO_NAME) from None


def bind(sock: socket.socket, address: Any) -> socket.socket:
    """Bind it to the address in its family's form. Raises OSError; then it is closed."""
    try:
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with _named_host():
            sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def listen(sock: socket.socket, address: Any) -> socket.socket:
    """Bind it, so that connections can be accepted without blocking. Raises OSError; then it is closed."""
    bind(sock, address)
    try:
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


async def open_all(host: str, port: int, opened: Callable[[socket.socket, Any], socket.socket]) -> list[socket.socket]:
    """A socket for each address of the host, all with one port, opened by `bind` or `listen`. For port 0 it is one that
    is free on all of them: the system chooses for one address alone. Raises OSError."""
    loop = asyncio.get_running_loop()
    with _named_host():
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    left = 1 if port else TRIES
    while True:
        left -= 1
        try:
            return _open(found, port, opened)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not left:
                raise


def _open(
    found: Sequence[Any], port: int, opened: Callable[[socket.socket, Any], socket.socket]
) -> list[socket.socket]:
    done: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            done.append(sock)
            if family == socket.AF_INET6 and len(found) > 1:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            port = opened(sock, (address[0], port, *address[2:])).getsockname()[1]
    except OSError:
        for sock in done:
            sock.close()
        raise
    return done


def bind_unix(path: str) -> socket.socket:
    """Remove a socket file that a killed server left; any other file is not ours and stays. Raises OSError."""
    if os.path.exists(path) and not Path(path).is_socket():
        raise FileExistsError(errno.EEXIST, "a file of this name exists and is not a socket")
    remove_left_socket(path)
    return listen(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path)


def remove_left_socket(path: str) -> bool:
    """Remove the socket file of a server that was killed: nobody answers there. Raises OSError."""
    if not Path(path).is_socket() or _answers(path):
        return False
    os.unlink(path)
    return True


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == 0
