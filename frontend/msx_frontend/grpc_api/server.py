"""The server's gRPC side, as one thing to start and to stop."""

from __future__ import annotations

from typing import Protocol

from msx_frontend.config import ServerConfig
from msx_frontend.grpc_api import health, inference
from msx_frontend.grpc_api.handlers import LogsCalls
from msx_frontend.grpc_api.listener import GrpcListen, GrpcListener


class Models(inference.TakesJobs, health.FindsModels, Protocol):
    """What gRPC needs of the registry."""


class GrpcServer:
    """Predictions, health and reflection; the latter two need no token, because probes have none."""

    def __init__(
        self,
        config: ServerConfig,
        registry: Models,
        state: health.KnowsHealth,
        tokens: inference.ChecksTokens | None,
        access_log: LogsCalls | None = None,
    ) -> None:
        predictions = inference.InferenceService(
            registry, state, tokens, max_response_size=config.max_response_size, access_log=access_log
        )
        probes = health.HealthService(registry, state)
        services = {inference.SERVICE: predictions.handler(), health.SERVICE: probes.handler()}
        self._inference = GrpcListener(_inference_listen(config), services, probes.close)

    @property
    def bound_port(self) -> int:
        return self._inference.bound_port

    @property
    def address(self) -> str:
        """`host:port` of the inference services, once started."""
        return self._inference.address

    async def start(self) -> None:
        """Raises GrpcListenError."""
        await self._inference.start()

    async def stop(self, grace: float) -> None:
        """No new calls; running ones may end for `grace` seconds, then they and their jobs are cancelled."""
        await self._inference.stop(grace)


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
