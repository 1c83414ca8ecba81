"""The server's gRPC side, as one thing to start and to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

from msx_frontend.apis.kserve.grpc.open_inference import OpenInferenceService
from msx_frontend.apis.probes import grpc_health as health
from msx_frontend.apis.torchserve.grpc import inference, management
from msx_frontend.config import ServerConfig
from msx_frontend.held_bytes import HeldBytes
from msx_frontend.net.grpc.admission import Admission, ChecksTokens
from msx_frontend.net.grpc.context import LogsCalls
from msx_frontend.net.grpc.listen import GrpcListen, GrpcListener
from msx_frontend.net.grpc.reflection import ReflectionService
from msx_frontend.net.grpc.service import Service
from msx_frontend.net.tls.listeners import ServerTls


class Models(inference.TakesJobs, health.FindsModels, Protocol):
    """What gRPC needs of the registry."""


class GrpcServer:
    """Two listeners: predictions, and management. Both have health and reflection, without tokens: probes have none.

    With `direct_predictions` they speak HTTP/2 by themselves, else by grpc.aio.
    """

    def __init__(
        self,
        config: ServerConfig,
        registry: Models,
        models: management.ManagesModels,
        state: health.KnowsHealth,
        tokens: ChecksTokens | None,
        access_log: LogsCalls | None = None,
        tls: ServerTls | None = None,
        open_inference: Collection[OpenInferenceService] = (),
        held: HeldBytes | None = None,
    ) -> None:
        predictions = inference.InferenceService(
            registry,
            state,
            Admission(tokens, "inference"),
            keys=config.sequence_keys,
            max_response_size=config.max_response_size,
            access_log=access_log,
            held=held,
        )
        operations = management.ManagementService(models, Admission(tokens, "management"), access_log)
        make = listener_class(config.direct_predictions)

        def listener(listen: GrpcListen, services: list[Service]) -> GrpcListener:
            probes = health.HealthService(registry, state, [one.name for one in services])
            served = [*services, probes.service()]
            reflection = ReflectionService([one.name for one in served])
            return make(listen, [*served, *reflection.services()], probes.close, tls and tls.of(listen.keys), held)

        served = [predictions.service(), *(one.service() for one in open_inference)]
        self.inference = listener(_inference_listen(config), served)
        self.management = listener(_management_listen(config), [operations.service()])

    async def start(self) -> None:
        """Raises GrpcListenError."""
        await self.inference.start()
        await self.management.start()

    async def stop(self, grace: float) -> None:
        """No new calls; running ones may end for `grace` seconds, then they and their jobs are cancelled."""
        await asyncio.gather(self.inference.stop(grace), self.management.stop(grace))


def listener_class(direct: bool) -> Callable[..., GrpcListener]:
    """What the other way needs is not imported."""
    if direct:
        from msx_frontend.net.grpc.direct.listener import DirectListener

        return DirectListener
    from msx_frontend.net.grpc.aio.listener import AioListener

    return AioListener


def _inference_listen(config: ServerConfig) -> GrpcListen:
    return GrpcListen(
        "grpc_inference",
        config.grpc_inference_address,
        config.grpc_inference_port,
        config.max_request_size,
        config.max_response_size,
        config.grpc_inference_max_connection_age_ms,
        config.grpc_inference_max_connection_age_grace_ms,
    )


def _management_listen(config: ServerConfig) -> GrpcListen:
    return GrpcListen(
        "grpc_management",
        config.grpc_management_address,
        config.grpc_management_port,
        config.max_request_size,
        config.max_response_size,
        config.grpc_management_max_connection_age_ms,
        config.grpc_management_max_connection_age_grace_ms,
    )
