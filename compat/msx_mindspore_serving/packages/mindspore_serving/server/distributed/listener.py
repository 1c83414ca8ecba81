"""Waits for the scripts that call `startup_agents`, and notices when one of them ends."""

import contextlib
import socket
import threading
from collections.abc import Callable

from ..listen_address import failed
from ..signals import leave_to_main
from . import link
from .link import AgentConfiguration, AgentRefusal, AgentRegistration, LinkError, RankFiles

MOST_CONNECTIONS = 64
"""Scripts that are connected at a time; one a machine is usual."""


class AgentListener:
    """Threads of its own read the connections. `lost` is called once, when an agent's script ends after all ranks were
    there."""

    def __init__(self, address: str, configuration: AgentConfiguration, lost: Callable[[], None]) -> None:
        """Raises RuntimeError if the address is illegal, or taken."""
        self._configuration, self._lost = configuration, lost
        self._changed = threading.Condition()
        self._connections: list[socket.socket] = []
        self._registered: dict[int, RankFiles] = {}
        self._first: AgentRegistration | None = None
        self._failed = self._gone = self._closed = False
        self._listening = _listen(address)
        threading.Thread(target=self._accept, name="agents", daemon=True).start()

    def wait(self, seconds: int) -> AgentRegistration:
        """Files of all ranks; 0 seconds are no limit. Raises RuntimeError."""
        size = len(self._configuration.places)
        with self._changed:
            whole = self._changed.wait_for(
                lambda: self._failed or self._closed or len(self._registered) == size, seconds or None
            )
            if self._closed:
                raise RuntimeError("Worker or Agents has stopped")
            if self._failed:
                raise RuntimeError("Failed to starting all agents, maybe some error reported")
            if not whole or self._first is None:
                raise RuntimeError(
                    "Failed to wait for ready of all agents, "
                    f"current agents count: {len(self._registered)}, rank size: {size}"
                )
            return AgentRegistration(dict(sorted(self._registered.items())), self._first.dec_key, self._first.dec_mode)

    def check(self) -> None:
        """Raises RuntimeError if an agent's script has ended since."""
        if self._gone or self._failed or self._closed:
            raise RuntimeError("Worker or Agents has stopped")

    def announce(self, error: str = "") -> None:
        """Tells the agents' scripts that the servable is ready, or why it is not, so that they end."""
        with self._changed:
            self._closed |= bool(error)
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # the thread that reads it notices
                link.send(connection, link.AgentOutcome(error[:10_000]))

    def close(self) -> None:
        """The agents' scripts end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for sock in (self._listening, *self._connections):
            _shut(sock)

    def _accept(self) -> None:
        leave_to_main()
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            try:
                link.prepare(connection)
                with self._changed:
                    if self._closed or len(self._connections) == MOST_CONNECTIONS:
                        raise LinkError("too many")
                    self._connections.append(connection)
            except OSError:
                connection.close()
                continue
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        registered = False
        try:
            link.send(connection, self._configuration)
            while (message := link.receive(connection)) is not None:
                registered |= self._take(message)
        except OSError:
            pass
        with self._changed:
            self._connections.remove(connection)
        connection.close()
        if registered:
            self._lose()

    def _take(self, message: link.AgentMessage) -> bool:
        """Whether ranks were registered."""
        with self._changed:
            if isinstance(message, AgentRegistration) and not self._registered.keys() & message.ranks.keys():
                self._registered |= message.ranks
                self._first = self._first or message
            elif isinstance(message, AgentRefusal | AgentRegistration):
                self._failed = True
            self._changed.notify_all()
            return isinstance(message, AgentRegistration)

    def _lose(self) -> None:
        """One of the scripts has ended: its ranks are not to be served any more."""
        with self._changed:
            tell = not (self._gone or self._closed)
            whole = len(self._registered) == len(self._configuration.places)
            self._gone, self._failed = True, self._failed or not whole
            self._changed.notify_all()
        if tell and whole:
            self._lost()


def _listen(address: str) -> socket.socket:
    name = link.socket_name(address)
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.bind(name)
        sock.listen(MOST_CONNECTIONS)
    except OSError:
        sock.close()
        raise failed(f"Distributed gRPC server start failed, create server failed, address {address}") from None
    return sock


def _shut(sock: socket.socket) -> None:
    """Wakes the thread that waits on it, which closes a connection."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    if sock.fileno() != -1 and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        sock.close()
