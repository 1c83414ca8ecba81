"""Server reflection: clients such as grpcurl learn the services, with their messages, from the server itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any

from msx_frontend.grpc_api.context import Context
from msx_frontend.grpc_api.messages import POOL
from msx_frontend.grpc_api.service import Method, Service

SERVICE = "grpc.reflection.v1alpha.ServerReflection"


class ReflectionService:
    """By the library, which is imported when somebody asks: it imports all of grpc."""

    def __init__(self, services: Collection[str]) -> None:
        self._services = [*services, SERVICE]

    def service(self) -> Service:
        method = Method(SERVICE, "ServerReflectionInfo", True, True, bytes, bytes, self._info)
        return Service(SERVICE, (method,))

    async def _info(self, requests: AsyncIterator[bytes], context: Context) -> None:
        reflection, messages = await asyncio.to_thread(_library)
        servicer = reflection.aio.ReflectionServicer(self._services, pool=POOL)
        parsed = (messages.ServerReflectionRequest.FromString(request) async for request in requests)
        async for response in servicer.ServerReflectionInfo(parsed, context):
            await context.write(response.SerializeToString())


def _library() -> tuple[Any, Any]:
    from grpc_reflection.v1alpha import reflection, reflection_pb2

    return reflection, reflection_pb2
