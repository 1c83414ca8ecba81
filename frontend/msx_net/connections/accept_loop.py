"""Accepts the connections of one listener: uvicorn's Server and asyncio's get no sockets."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from msx_net.connections.handshake import Handshake
from msx_net.connections.open_connections import ListenerConnections
from msx_net.connections.refuse import refuse_new

log = logging.getLogger("msx.connections")

BATCH = 64
"""Connections that are accepted in one turn of the loop: others have theirs between two batches."""

HALF_OPEN = 0.02
"""Seconds in which clients that have begun to connect at the end may complete their TCP handshake: a round trip."""

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
"""Errors of accept(2) about one connection, which is gone: the next one may be well."""

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
        self._of_server = connections.of_server
        self._stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._resume()

    async def stop(self) -> None:
        """Take the connections that clients have begun to make, and then no more. Nobody is reset."""
        if self._stopped:
            return
        self._stopped = True
        self._stop_reading()
        for sock in self._sockets:
            refuse_new(sock)
        self._accept_all()
        try:
            await asyncio.sleep(HALF_OPEN)
        finally:
            self._accept_all()
            self.close()

    def leave(self) -> None:
        """Accept no more; those who connect wait in the kernel for another process that has the sockets."""
        self._stopped = True
        self._stop_reading()
        self.close()

    def _accept_all(self) -> None:
        for sock in self._sockets:
            while self._accept(sock):
                pass

    def close(self) -> None:
        """Close sockets from which nothing was accepted yet: those who have connected are reset."""
        for sock in self._sockets:
            sock.close()

    def _resume(self) -> None:
        if not self._stopped:
            for sock in self._sockets:
                self._loop.add_reader(sock.fileno(), self._accept_batch, sock)

    def _pause(self, reason: str = "") -> None:
        """Stop accepting; those who connect wait in the kernel."""
        if not self._stopped:
            self._stop_reading()
            self._of_server.wait_for_room(self._resume, reason)

    def _stop_reading(self) -> None:
        for sock in self._sockets:
            self._loop.remove_reader(sock.fileno())

    def _accept_batch(self, sock: socket.socket) -> None:
        if self._of_server.full:
            self._pause()
            return
        for _ in range(BATCH):
            if not self._accept(sock) or self._of_server.full:
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
            self._pause(f"accept(2) says: {error.strerror}")
            return False
        self._adopt(accepted, address)
        return True

    def _adopt(self, accepted: socket.socket, address: Any) -> None:
        accepted.setblocking(False)
        self._of_server.accepted(accepted.fileno())
        if self._tls is None:
            self._of_server.connecting += 1
            self._run(self._loop.connect_accepted_socket(self._connect, accepted))
        else:
            client = f"{address[0]}:{address[1]}" if address else "a client"
            Handshake(self._connect, accepted, client, self._tls, self._handshake_timeout, self._connections).start()

    def _run(self, connecting: Coroutine[Any, Any, object], _: object = None) -> None:
        """Run like a task, for a third of its cost: a connection waits for the loop's next turn only."""
        try:
            awaited = connecting.send(None)
        except StopIteration:
            self._of_server.connecting -= 1
        except OSError as error:
            self._of_server.connecting -= 1
            log.debug("a connection was lost when it was accepted: %s", error)
        except Exception:
            self._of_server.connecting -= 1
            log.exception("a connection was accepted and cannot be served")
        else:
            awaited.add_done_callback(partial(self._run, connecting))
