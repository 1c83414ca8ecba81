"""gRPC's health checking protocol, for the server and for each model.

The messages are ours rather than grpcio-health-checking's, which knows only what it was told last and registers
its classes in protobuf's default pool.
"""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Any, Protocol

from msx_core.service_errors import ModelNotFound, ModelVersionNotFound
from msx_frontend.models.health import KnowsReadiness
from msx_net.grpc.context import CallContext
from msx_net.grpc.messages import message_class
from msx_net.grpc.service import Rpc, Service, describe

SERVICE = "grpc.health.v1.Health"
LOOK = 1.0
"""Seconds between two checks for a Watch."""

_Response = message_class("grpc.health.v1.HealthCheckResponse")


class Serves(Protocol):
    @property
    def serving(self) -> bool: ...


class FindsModels(Protocol):
    def find(self, name: str) -> Serves:
        """The default version. Raises ModelNotFound, ModelVersionNotFound."""


class HealthService:
    """`service` is empty or one of `services` for the whole server, else a model's name.

    SERVING is what the readiness probe says, or whether the model's default version answers.
    """

    def __init__(self, registry: FindsModels, state: KnowsReadiness, services: Collection[str]) -> None:
        self._registry, self._state = registry, state
        self._whole_server = frozenset({"", *services})
        self._closed = asyncio.Event()

    def service(self) -> Service:
        return describe(SERVICE, {"Check": Rpc(self._check, key=None), "Watch": Rpc(self._watch, key=None)})

    def close(self) -> None:
        """Tell every Watch NOT_SERVING and end it."""
        self._closed.set()

    async def _check(self, request: Any, context: CallContext) -> Any:
        return _Response(status=self._status(request.service))

    async def _watch(self, request: Any, context: CallContext) -> None:
        last = None
        while not self._closed.is_set():
            status = self._status_or_unknown(request.service)
            if status != last:
                await context.write(_Response(status=status))
                last = status
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closed.wait(), LOOK)
        await context.write(_Response(status=_Response.NOT_SERVING))

    def _status(self, name: str) -> int:
        """Raises ModelNotFound, ModelVersionNotFound."""
        serving = self._state.ready() if name in self._whole_server else self._registry.find(name).serving
        return int(_Response.SERVING if serving and not self._closed.is_set() else _Response.NOT_SERVING)

    def _status_or_unknown(self, name: str) -> int:
        try:
            return self._status(name)
        except (ModelNotFound, ModelVersionNotFound):
            return int(_Response.SERVICE_UNKNOWN)
