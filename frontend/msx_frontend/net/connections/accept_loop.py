"""Accepts the connections of one listener: uvicorn's Server and asyncio's get no sockets."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from msx_frontend.net.connections.handshake import Handshake
from msx_frontend.net.connections.open_connections import ListenerConnections

log = logging.getLogger("msx.connections")

BATCH = 64
"""Connections that are accepted in one turn of the loop: others have theirs between two batches."""

_OF_CLIENT = frozenset(
    {
        errno.ECONNABORTED,
        errno.EPROTO,
        errno.EPERM,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.ENOPROTOOPT,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EOPNOTSUPP,
    }
)
"""What accept(2) says of one connection, which is gone: the next one may be well."""

RETRY = 0.1
"""Seconds until accepting is tried again where it is not possible."""

Connect = Callable[[], asyncio.Protocol]
"""Makes the protocol of a connection, which adds itself to the listener's connections."""


class AcceptLoop:
    """Owns the sockets, which listen and do not block. With `tls` every connection begins with a handshake, which has
    `handshake_timeout` seconds from the accept on; any number of them run at the same time."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        connect: Connect,
        connections: ListenerConnections,
        tls: ssl.SSLContext | None = None,
        handshake_timeout: float = 10.0,
    ) -> None:
        self._sockets = sockets
        self._connect = connect
        self._connections = connections
        self._tls = tls
        self._handshake_timeout = handshake_timeout
        self._retry: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._resume()

    def stop(self) -> None:
        """Take the connections whose (TCP) handshake the kernel has completed, and then no more."""
        self._pause()
        for sock in self._sockets:
            while self._accept(sock):
                pass
        if self._retry is not None:
            self._retry.cancel()
        self.close()

    def close(self) -> None:
        """Of sockets from which nothing was accepted yet: those who have connected are reset."""
        for sock in self._sockets:
            sock.close()

    def _resume(self) -> None:
        self._retry = None
        for sock in self._sockets:
            self._loop.add_reader(sock.fileno(), self._accept_batch, sock)

    def _pause(self) -> None:
        for sock in self._sockets:
            self._loop.remove_reader(sock.fileno())

    def _accept_batch(self, sock: socket.socket) -> None:
        for _ in range(BATCH):
            if not self._accept(sock):
                return

    def _accept(self, sock: socket.socket) -> bool:
        """Returns whether there may be another one."""
        try:
            accepted, address = sock.accept()
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            if error.errno in _OF_CLIENT:
                return True
            self._cannot_accept(error)
            return False
        self._adopt(accepted, address)
        return True

    def _cannot_accept(self, error: OSError) -> None:
        """Want of descriptors or memory, mostly. What cannot be accepted now waits in the kernel."""
        self._pause()
        if self._retry is None:
            log.warning("no connection can be accepted: %s; trying again", error.strerror)
            self._retry = self._loop.call_later(RETRY, self._resume)

    def _adopt(self, accepted: socket.socket, address: Any) -> None:
        accepted.setblocking(False)
        if self._tls is None:
            _run(self._loop.connect_accepted_socket(self._connect, accepted))
        else:
            client = f"{address[0]}:{address[1]}" if address else "a client"
            Handshake(self._connect, accepted, client, self._tls, self._handshake_timeout, self._connections).start()


def _run(connecting: Coroutine[Any, Any, object], _: object = None) -> None:
    """What a task would do, for a third of its cost: a connection waits for the loop's next turn only."""
    try:
        awaited = connecting.send(None)
    except StopIteration:
        return
    except OSError as error:
        log.debug("a connection was lost when it was accepted: %s", error)
        return
    awaited.add_done_callback(partial(_run, connecting))
