"""A client whose TLS handshake is not complete."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from msx_net.connections.connection import ON_ITS_WAY, forgiven
from msx_net.connections.open_connections import ListenerConnections

log = logging.getLogger("msx.connections")
_NEVER = 1e6
"""Seconds after which uvloop would end a handshake by a timer of its own, which knows nothing of what stands unread in
the socket: `look` is earlier."""
_TOO_SLOW = "%s did not complete the TLS handshake within %g s (tls_handshake_timeout)"


class Handshake:
    """A `Connection` that ends when the handshake does: another one takes its place, or none."""

    def __init__(
        self,
        connect: Callable[[], asyncio.Protocol],
        accepted: socket.socket,
        client: str,
        tls: ssl.SSLContext,
        timeout: float,
        connections: ListenerConnections,
    ) -> None:
        self._accepted, self._client = accepted, client
        self._connect, self._tls, self._timeout = connect, tls, timeout
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self.idle_since = self._loop.time()

    def start(self) -> None:
        self._connections.add(self)
        self._task = self._loop.create_task(self._shake_hands(), name="tls-handshake")
        self._task.add_done_callback(lambda _: self._connections.discard(self))

    def forgive(self, seconds: float, now: float) -> None:
        self.idle_since = forgiven(self.idle_since, seconds, now)

    def look(self, now: float) -> None:
        if now - self.idle_since >= self._timeout:
            log.info(_TOO_SLOW, self._client, self._timeout)
            self._task.cancel()

    def shutdown(self, on_its_way: float = ON_ITS_WAY) -> None:
        """A client that has connected is served: its handshake may be completed."""

    def abort(self) -> None:
        self._task.cancel()

    async def _shake_hands(self) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._connect,
                self._accepted,
                ssl=self._tls,
                ssl_handshake_timeout=_NEVER,
            )
        except OSError as error:
            log.debug("%s: the TLS handshake failed: %s", self._client, error)
