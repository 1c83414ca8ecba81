"""Where a gRPC port is and what it allows, by either transport."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from msx_core.held_bytes import HeldBytes
from msx_core.start_errors import StartError
from msx_net.connections.limits import ConnectionLimits
from msx_net.connections.open_connections import OpenConnections
from msx_net.grpc.admission import Admission
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.listening.kept import KEEPS_NONE, KeepsSockets
from msx_net.tls.listeners import ListenerTls

if TYPE_CHECKING:  # protobuf is imported while the first workers start
    from msx_net.grpc.service import Service

FRAMING = 64
"""Bytes that a response may have beyond its payload."""
MAX_HEADERS = 16 << 10
"""Bytes of the headers of a call, with 32 more for each (RFC 9113 §6.5.2)."""


class GrpcListenError(StartError):
    """A gRPC port cannot be opened; the message names address, reason and remedy."""


@dataclass(frozen=True)
class GrpcListen:
    """Where and how: sizes in bytes, ages in ms. `keys` is how the config's keys begin, such as `grpc_inference`.
    `path` is that of a Unix socket, which has neither host nor port."""

    keys: str
    host: str
    port: int
    max_request_size: int
    max_response_size: int
    max_age: int | None = None
    max_age_grace: int | None = None
    path: str = ""

    @property
    def largest_response(self) -> int:
        """Bytes of a message."""
        return self.max_response_size + FRAMING

    def target(self, port: int) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"

    def refusal(self, error: Exception) -> GrpcListenError:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return GrpcListenError(
            f"gRPC cannot listen on {self.target(self.port)}: {reason}. "
            f"Stop what listens there, or set {self.keys}_address and {self.keys}_port in config.properties."
        )


@dataclass(frozen=True)
class GrpcServed:
    """Services of a port, and who may call them. `on_stop` ends calls that would not end by themselves.

    With `tls` the port speaks nothing else. `held` counts what clients send, `connections` are those of all listeners.
    """

    services: Collection[Service]
    admission: Admission
    on_stop: Callable[[], None] = lambda: None
    tls: ListenerTls | None = None
    held: HeldBytes | None = None
    connections: OpenConnections | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    heartbeats: StreamHeartbeats = OFF
    kept: KeepsSockets = KEEPS_NONE


class GrpcListener(Protocol):
    """A port and the services behind it, by either transport."""

    bound_port: int
    keys: str
    """How the config's keys begin that say where it is."""

    @property
    def address(self) -> str: ...

    async def start(self) -> None:
        """Raises GrpcListenError."""

    async def stop(self, grace: float) -> None:
        """No new calls; running ones may end for `grace` seconds, then they are cancelled."""

    async def leave(self, limit: float) -> None:
        """Let another process accept; calls that are here may end for `limit` seconds, see `finish`."""

    async def finish(self, limit: float) -> None:
        """Returns when no call is left of those that came before `leave`, or after `limit` seconds."""
