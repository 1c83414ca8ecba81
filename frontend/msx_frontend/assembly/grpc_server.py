"""The server's gRPC side, as one thing to start and to stop. It imports protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from msx_frontend.apis.probes.grpc_health import FindsModels, HealthService
from msx_frontend.config import ServerConfig
from msx_frontend.held_bytes import HeldBytes
from msx_frontend.models.health import KnowsReadiness
from msx_frontend.net.connections.limits import connection_limits
from msx_frontend.net.connections.open_connections import OpenConnections
from msx_frontend.net.grpc.admission import Admission, ChecksTokens
from msx_frontend.net.grpc.listen import GrpcListen, GrpcListener, GrpcServed
from msx_frontend.net.grpc.reflection import ReflectionService
from msx_frontend.net.grpc.service import ListenerName, Service
from msx_frontend.net.tls.listeners import ServerTls


class GrpcServer:
    """Two listeners: predictions, and management. Both have health and reflection, which are public.

    With `direct_predictions` they speak HTTP/2 by themselves, else by grpc.aio.
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
    ) -> None:
        make, known = listener_class(config.direct_predictions), list(services)

        def listener(name: ListenerName, listen: GrpcListen) -> GrpcListener:
            own = [one for one in known if one.listener == name]
            probes = HealthService(registry, health, [one.name for one in own])
            served = [*own, probes.service()]
            reflection = ReflectionService([one.name for one in served])
            return make(
                listen,
                GrpcServed(
                    services=[*served, *reflection.services()],
                    admission=Admission(tokens),
                    on_stop=probes.close,
                    tls=None if tls is None else tls.of(listen.keys),
                    held=held,
                    connections=connections,
                    limits=connection_limits(config),
                ),
            )

        self.inference = listener("inference", _inference_listen(config))
        self.management = listener("management", _management_listen(config))

    async def start(self) -> None:
        """Raises GrpcListenError."""
        await self.inference.start()
        await self.management.start()

    async def stop(self, grace: float) -> None:
        """No new calls; running ones may end for `grace` seconds, then they and their jobs are cancelled."""
        await asyncio.gather(self.inference.stop(grace), self.management.stop(grace))


def listener_class(direct: bool) -> Callable[[GrpcListen, GrpcServed], GrpcListener]:
    """What the other transport needs is not imported."""
    if direct:
        from msx_frontend.net.grpc.direct.listener import DirectListener

        return DirectListener
    from msx_frontend.net.grpc.aio.listener import AioListener

    return AioListener


def _inference_listen(config: ServerConfig) -> GrpcListen:
    return GrpcListen(
        keys="grpc_inference",
        host=config.grpc_inference_address,
        port=config.grpc_inference_port,
        max_request_size=config.max_request_size,
        max_response_size=config.max_response_size,
        max_age=config.grpc_inference_max_connection_age_ms,
        max_age_grace=config.grpc_inference_max_connection_age_grace_ms,
    )


def _management_listen(config: ServerConfig) -> GrpcListen:
    return GrpcListen(
        keys="grpc_management",
        host=config.grpc_management_address,
        port=config.grpc_management_port,
        max_request_size=config.max_request_size,
        max_response_size=config.max_response_size,
        max_age=config.grpc_management_max_connection_age_ms,
        max_age_grace=config.grpc_management_max_connection_age_grace_ms,
    )
