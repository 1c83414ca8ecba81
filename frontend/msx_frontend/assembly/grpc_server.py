"""The server's gRPC side, as one thing to start and to stop. It imports protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from msx_core.held_bytes import HeldBytes
from msx_frontend.apis.probes.grpc_health import FindsModels, HealthService
from msx_frontend.apis.torchserve.grpc.status import details
from msx_frontend.config import ServerConfig
from msx_frontend.config.connections import connection_limits
from msx_frontend.config.server_config import GrpcTransport
from msx_frontend.config.tls_listeners import GRPC
from msx_frontend.models.health import KnowsReadiness
from msx_net.connections.open_connections import OpenConnections
from msx_net.grpc.admission import Admission, ChecksTokens
from msx_net.grpc.listen import GrpcListen, GrpcListener, GrpcServed
from msx_net.grpc.reflection import ReflectionService
from msx_net.grpc.service import ListenerName, Service, limited
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.listening.kept import KEEPS_NONE, KeepsSockets
from msx_net.page_guard import PageGuard
from msx_net.tls.listeners import ListenerTls, ServerTls

if TYPE_CHECKING:
    from msx_net.grpc.direct.port_calls import PortCalls


class GrpcServer:
    """Two listeners: predictions, and management. Both have health and reflection, which are public.

    They speak HTTP/2 by themselves, or by grpc.aio (`grpc_transport=grpcio`).
    """

    def __init__(
        self,
        config: ServerConfig,
        services: Iterable[Service],
        registry: FindsModels,
        health: KnowsReadiness,
        tokens: ChecksTokens | None,
        tls: ServerTls | None = None,
        held: HeldBytes | None = None,
        connections: OpenConnections | None = None,
        guard: PageGuard | None = None,
        heartbeats: StreamHeartbeats = OFF,
        kept: KeepsSockets = KEEPS_NONE,
    ) -> None:
        self._config, self._services, self._registry, self._health = config, list(services), registry, health
        self._tokens, self._tls, self._held, self._connections = tokens, tls, held, connections
        self._guard, self._heartbeats, self._kept = guard, heartbeats, kept
        self._started: list[GrpcListener] = []
        self.inference = self._listener("inference", inference_listen(config))
        self.management = self._listener("management", management_listen(config))

    def _listener(self, name: ListenerName, listen: GrpcListen) -> GrpcListener:
        tls = None if self._tls is None else self._tls.of(listen.keys)
        return listener_class(self._config.grpc_transport)(listen, self._served((name,), tls))

    def _served(self, names: Collection[str], tls: ListenerTls | None = None) -> GrpcServed:
        """The services of these listeners, with health and reflection of their own."""
        own = [one for one in self._services if one.listener in names]
        probes = HealthService(self._registry, self._health, [one.name for one in own])
        served = [*own, probes.service()._replace(details_of=details)]
        reflection = ReflectionService([one.name for one in served])
        return GrpcServed(
            services=[*served, *reflection.services()],
            admission=Admission(self._tokens, self._guard),
            on_stop=probes.close,
            tls=tls,
            held=self._held,
            connections=self._connections,
            limits=connection_limits(self._config),
            heartbeats=self._heartbeats,
            kept=self._kept,
        )

    def calls_of(self, names: Collection[str]) -> PortCalls:
        """The services of these listeners for a REST port, which speaks HTTP/2 by itself in any case."""
        from msx_net.grpc.direct.port_calls import PortCalls

        listen = inference_listen(self._config)
        return PortCalls(self._served(names), listen.max_request_size, listen.largest_response)

    def open_to_all(self, listen: GrpcListen, service: str, tls: ListenerTls | None) -> GrpcListener:
        """A listener that has only this service, and asks for no key."""
        from msx_net.grpc.direct.listener import DirectListener

        services = [limited(one, listen.max_response_size) for one in self._services if one.name == service]
        limits = connection_limits(self._config)
        served = GrpcServed(
            services,
            Admission(None),
            tls=tls,
            held=self._held,
            connections=self._connections,
            limits=limits,
            heartbeats=self._heartbeats,
        )
        return DirectListener(listen, served)

    async def start(self, names: Collection[str] = GRPC) -> None:
        """Start the listeners with these keys. Raises GrpcListenError."""
        for listener in (self.inference, self.management):
            if listener.keys in names:
                self._started.append(listener)
                await listener.start()

    async def leave(self, limit: float) -> None:
        """See `GrpcListener.leave`."""
        await asyncio.gather(*(listener.leave(limit) for listener in self._started))

    async def finish(self, limit: float) -> None:
        """See `GrpcListener.finish`."""
        await asyncio.gather(*(listener.finish(limit) for listener in self._started))

    async def stop(self, grace: float) -> None:
        """No new calls; running ones may end for `grace` seconds, then they and their jobs are cancelled."""
        await asyncio.gather(*(listener.stop(grace) for listener in self._started))


def listener_class(transport: GrpcTransport) -> Callable[[GrpcListen, GrpcServed], GrpcListener]:
    """Import one transport, and not what the other one needs."""
    if transport == "own":
        from msx_net.grpc.direct.listener import DirectListener

        return DirectListener
    from msx_net.grpc.aio.listener import AioListener

    return AioListener


def inference_listen(config: ServerConfig) -> GrpcListen:
    return GrpcListen(
        keys="grpc_inference",
        host=config.grpc_inference_address,
        port=config.grpc_inference_port,
        max_request_size=config.max_request_size,
        max_response_size=config.max_response_size,
        max_age=config.grpc_inference_max_connection_age_ms,
        max_age_grace=config.grpc_inference_max_connection_age_grace_ms,
    )


def management_listen(config: ServerConfig) -> GrpcListen:
    return GrpcListen(
        keys="grpc_management",
        host=config.grpc_management_address,
        port=config.grpc_management_port,
        max_request_size=config.max_request_size,
        max_response_size=config.max_response_size,
        max_age=config.grpc_management_max_connection_age_ms,
        max_age_grace=config.grpc_management_max_connection_age_grace_ms,
    )
