"""One gRPC listener by grpc.aio."""

from __future__ import annotations

import asyncio

import grpc

from msx_net.connections.limits import ConnectionLimits
from msx_net.connections.listen import bind, open_all
from msx_net.grpc.aio.handlers import generic_handlers
from msx_net.grpc.listen import MAX_HEADERS, GrpcListen, GrpcServed
from msx_net.grpc.served import served_methods
from msx_net.http2.limits import Limits
from msx_net.tls.identity import TlsIdentity
from msx_net.tls.listeners import ListenerTls


class AioListener:
    """A port that grpc listens at; with `tls` it speaks nothing else. `on_stop` ends calls that would not end by
    themselves.

    What grpc reads is not counted before it is a message: then its service counts it, and `held` is not used.
    """

    def __init__(self, listen: GrpcListen, served: GrpcServed) -> None:
        self._listen, self.keys = listen, listen.keys
        self._on_stop = served.on_stop
        self._tls = served.tls
        methods = served_methods(served.services, served.admission, listen.largest_response)
        self._server = grpc.aio.server(
            handlers=generic_handlers(methods, served.heartbeats), options=options(listen, served.limits)
        )
        self.bound_port = 0
        self._leaving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return self._listen.target(self.bound_port)

    async def start(self) -> None:
        try:
            port = await _free_port(self._listen.host, self._listen.port)
            self.bound_port = self._add_port(self._listen.target(port))
        except (OSError, RuntimeError) as error:
            raise self._listen.refusal(error) from error
        await self._server.start()

    def _add_port(self, target: str) -> int:
        if self._tls is None:
            return self._server.add_insecure_port(target)
        return self._server.add_secure_port(target, _credentials(self._tls))

    async def stop(self, grace: float) -> None:
        self._on_stop()
        await self._server.stop(grace)

    async def leave(self, limit: float) -> None:
        """See `GrpcListener.leave`. The port is closed until the other process binds it."""
        self._leaving = asyncio.create_task(self.stop(limit), name="grpc-leaves")
        await asyncio.sleep(0)

    async def finish(self, limit: float) -> None:
        """See `GrpcListener.finish`."""
        if self._leaving is not None:
            await asyncio.wait({self._leaving}, timeout=limit)


def _credentials(tls: ListenerTls) -> grpc.ServerCredentials:
    """gRPC asks for each handshake, in a thread of its own, whether there is something new."""
    given = [tls.now]  # that nothing is new is told by None, which grpc-stubs does not know

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        if (now := tls.now) is given[0]:
            return None
        given[0] = now
        return _configuration(*now)

    demanded = given[0][1] is not None
    return grpc.dynamic_ssl_server_credentials(_configuration(*given[0]), renewed, demanded)  # type: ignore[arg-type]


def _configuration(identity: TlsIdentity, authorities: bytes | None) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(identity.key, identity.chain)], authorities)


def options(listen: GrpcListen, limits: ConnectionLimits) -> list[tuple[str, int]]:
    options = [
        ("grpc.so_reuseport", 0),  # on, a second server would silently share the port
        ("grpc.max_receive_message_length", listen.max_request_size),
        ("grpc.max_send_message_length", listen.largest_response),
        ("grpc.max_concurrent_streams", Limits.max_streams),
        ("grpc.max_metadata_size", MAX_HEADERS),  # above it, and below the next one, grpc refuses calls by chance
        ("grpc.absolute_max_metadata_size", MAX_HEADERS),
        ("grpc.keepalive_time_ms", int(limits.http2_ping_interval * 1000)),
        ("grpc.keepalive_timeout_ms", int(limits.http2_ping_timeout * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    if listen.max_age is not None:
        options.append(("grpc.max_connection_age_ms", listen.max_age))
    if listen.max_age_grace is not None:
        options.append(("grpc.max_connection_age_grace_ms", listen.max_age_grace))
    return options


async def _free_port(host: str, port: int) -> int:
    """The port, or for 0 one that is free on all addresses of the host. Raises OSError, which says why it is not: grpc
    does not, writes to stderr, and goes on with those addresses on which it is."""
    sockets = await open_all(host, port, bind)
    number: int = sockets[0].getsockname()[1]
    for sock in sockets:
        sock.close()
    return number
