"""One gRPC listener: a port and the services behind it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection

from msx_frontend.grpc_api.messages import POOL
from msx_frontend.start_errors import StartError
from msx_frontend.tls import TlsIdentity

_FRAMING = 64
"""Bytes that a response may have beyond its payload."""


class GrpcListenError(StartError):
    """A gRPC port cannot be opened; the message names address, reason and remedy."""


@dataclass(frozen=True)
class GrpcListen:
    """Where and how: sizes in bytes, ages in ms. `keys` is how the config's keys begin, such as `grpc_inference`."""

    keys: str
    host: str
    port: int
    max_request_size: int
    max_response_size: int
    max_age: int | None = None
    max_age_grace: int | None = None

    def options(self) -> list[tuple[str, int]]:
        options = [
            ("grpc.so_reuseport", 0),  # on, a second server would silently share the port
            ("grpc.max_receive_message_length", self.max_request_size),
            ("grpc.max_send_message_length", self.max_response_size + _FRAMING),
        ]
        if self.max_age is not None:
            options.append(("grpc.max_connection_age_ms", self.max_age))
        if self.max_age_grace is not None:
            options.append(("grpc.max_connection_age_grace_ms", self.max_age_grace))
        return options

    def target(self, port: int) -> str:
        return f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"


class GrpcListener:
    """`services` by their full names; reflection shows them. With `tls` it speaks nothing else.

    `on_stop` ends calls that would not end by themselves.
    """

    def __init__(
        self,
        listen: GrpcListen,
        services: Mapping[str, grpc.GenericRpcHandler[Any, Any]],
        on_stop: Callable[[], None] = lambda: None,
        tls: TlsIdentity | None = None,
    ) -> None:
        self._listen, self._on_stop, self._tls = listen, on_stop, tls
        self._server = grpc.aio.server(handlers=list(services.values()), options=listen.options())
        reflection.enable_server_reflection([*services, reflection.SERVICE_NAME], self._server, pool=POOL)
        self.bound_port = 0

    @property
    def address(self) -> str:
        return self._listen.target(self.bound_port)

    async def start(self) -> None:
        """Raises GrpcListenError."""
        try:
            await _probe(self._listen.host, self._listen.port)
            self.bound_port = self._add_port(self._listen.target(self._listen.port))
        except (OSError, RuntimeError) as error:
            raise GrpcListenError(_refusal(self._listen, error)) from error
        await self._server.start()

    def _add_port(self, target: str) -> int:
        if self._tls is None:
            return self._server.add_insecure_port(target)
        credentials = grpc.ssl_server_credentials([(self._tls.key, self._tls.chain)])
        return self._server.add_secure_port(target, credentials)

    async def stop(self, grace: float) -> None:
        """No new calls; running ones may end for `grace` seconds, then they are cancelled."""
        self._on_stop()
        await self._server.stop(grace)


async def _probe(host: str, port: int) -> None:
    """Raises OSError, which says why; grpc does not, and writes lines to stderr that nobody asked for."""
    loop = asyncio.get_running_loop()
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)


def _refusal(listen: GrpcListen, error: Exception) -> str:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return (
        f"gRPC cannot listen on {listen.target(listen.port)}: {reason}. "
        f"Stop what listens there, or set {listen.keys}_address and {listen.keys}_port in config.properties."
    )
