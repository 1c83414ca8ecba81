"""A port that is open until all expected streams have come: each says its key first, and others get no answer."""

import asyncio
import errno
import logging
import secrets
import socket
import ssl
from collections.abc import Callable, Collection

from msx_ray.agent_messages import CONTENT, KEY_SIZE, Hello
from msx_ray.agent_stream import AgentStream
from msx_ray.source_limits import SourceLimits
from msx_ray.unverified_connection import UnverifiedConnection

log = logging.getLogger("msx.cluster")

BACKLOG = 2048
"""Connections that wait in the kernel until they are accepted."""
BATCH = 16
"""Connections that are accepted in one turn of the loop: fewer than there is room for, so that none is closed before
its first bytes are looked for."""
RETRY = 0.1
"""Seconds until accepting is tried again where the system has no room for another connection."""
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

StreamName = tuple[str, int]
"""The kind of a stream, and the number of its rank or share."""


class Door:
    """Opens with `open`. `arrived` resolves to all expected streams, or raises OSError when `close` comes first.

    `content` takes the connections that agents make to fetch contents, any number while the door is open.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        expected: Collection[StreamName],
        content: Callable[[AgentStream], None] | None = None,
        key: str = "",
        agents: Collection[str] = (),
        limits: SourceLimits | None = None,
    ) -> None:
        """Make a key where there is no `key`. `agents` are the addresses of the agents that are expected, as far as
        they are known: connections of others cannot take their room. `limits` are shared by all doors of a process."""
        self.key = key or secrets.token_hex(KEY_SIZE)
        self.context = context
        self.limits = limits or SourceLimits()
        self._agents = list(agents)
        self._missing = set(expected)
        self._content = content
        self._streams: dict[StreamName, AgentStream] = {}
        self._listening: socket.socket | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._unverified: set[UnverifiedConnection] = set()
        self._refused = 0
        self._loop = asyncio.get_running_loop()
        self.arrived: asyncio.Future[dict[StreamName, AgentStream]] = self._loop.create_future()

    async def open(self, address: str) -> int:
        """Returns the port. Raises OSError."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, 0), family=family, backlog=BACKLOG)
        self._listening.setblocking(False)
        self.limits.reserve(self._agents)
        self._accept_again()
        return int(self._listening.getsockname()[1])

    def close(self, reason: str = "the port was closed") -> None:
        """Streams that have arrived and were not taken end. Idempotent."""
        self._shut()
        if not self.arrived.done():
            self.arrived.set_exception(ConnectionAbortedError(reason))
            self.arrived.exception()  # whoever does not wait need not be told
        for stream in self._streams.values():
            stream.close()

    def _shut(self) -> None:
        if self._listening is None:
            return
        self._stop_accepting()
        self._listening.close()
        self._listening = None
        for connection in list(self._unverified):
            connection.end()
        self.limits.give_back(self._agents)
        if self._refused > 1:
            log.warning("%d connections to a port for agents were refused in all", self._refused)

    def _accept_again(self) -> None:
        self._retry = None
        if self._listening is not None:
            self._loop.add_reader(self._listening.fileno(), self._accept_batch, self._listening)

    def _stop_accepting(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening.fileno())
        if self._retry is not None:
            self._retry.cancel()

    def _accept_batch(self, listening: socket.socket) -> None:
        for _ in range(BATCH):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._stop_accepting()
                    self._retry = self._loop.call_later(RETRY, self._accept_again)
                    return
                continue  # this one is gone
            sock.setblocking(False)
            self._unverified.add(UnverifiedConnection(self, sock, address[0]))

    def admit(self, hello: Hello) -> bool:
        """See `AgentPort.admit`."""
        if not secrets.compare_digest(hello.key.encode(), self.key.encode()):
            return False
        if hello.stream == CONTENT:
            return self._content is not None
        return _name(hello) in self._missing

    def enter(self, hello: Hello, stream: AgentStream) -> None:
        """See `AgentPort.enter`."""
        if hello.stream == CONTENT and self._content is not None:
            return self._content(stream)
        name = _name(hello)
        self._missing.discard(name)
        self._streams[name] = stream
        if not self._missing and not self.arrived.done():
            self._shut()
            self.arrived.set_result(self._streams)
        return None

    def refused(self, connection: UnverifiedConnection) -> None:
        """See `AgentPort.refused`. One line says the first, another one how many there were."""
        self._refused += 1
        if self._refused == 1:
            log.warning(
                "a connection to a port for agents was refused: it does not have the key (%s)", connection.address
            )

    def left(self, connection: UnverifiedConnection) -> None:
        """See `AgentPort.left`."""
        self._unverified.discard(connection)


def _name(hello: Hello) -> StreamName:
    return hello.stream, hello.share if hello.stream == "agent" else hello.rank
