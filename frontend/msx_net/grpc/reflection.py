"""Server reflection: clients such as grpcurl learn the services, with their messages, from the server itself."""

import asyncio
from collections.abc import AsyncIterator, Collection
from functools import cache
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from msx_net.grpc.context import CallContext
from msx_net.grpc.messages import POOL
from msx_net.grpc.service import Method, Service

NAMES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""The protocol, and its draft, which differs by name alone; older clients know nothing else."""


class ReflectionService:
    """Reflection by the library, which is imported at the first request: it imports all of grpc. It knows the draft
    only."""

    def __init__(self, services: Collection[str]) -> None:
        self._services = [*services, *NAMES]

    def services(self) -> list[Service]:
        return [Service(name, (self._method(name),)) for name in NAMES]

    def _method(self, service: str) -> Method:
        return Method(
            service=service,
            name="ServerReflectionInfo",
            client_streams=True,
            server_streams=True,
            parse=bytes,
            serialize=bytes,
            answer=self._info,
            key=None,
        )

    async def _info(self, requests: AsyncIterator[bytes], context: CallContext) -> None:
        reflection, messages = await asyncio.to_thread(_library)
        servicer = reflection.aio.ReflectionServicer(self._services, pool=POOL)
        parsed = (messages.ServerReflectionRequest.FromString(request) async for request in requests)
        async for response in servicer.ServerReflectionInfo(parsed, context):
            await context.write(response.SerializeToString())


@cache
def _library() -> tuple[Any, Any]:
    """Its own descriptors are among those that it tells of, as the draft and as what became of it."""
    from grpc_reflection.v1alpha import reflection, reflection_pb2

    draft = FileDescriptorProto.FromString(reflection_pb2.DESCRIPTOR.serialized_pb)
    for file in (draft, _final(draft)):
        POOL.AddSerializedFile(file.SerializeToString())
    return reflection, reflection_pb2


def _final(draft: FileDescriptorProto) -> FileDescriptorProto:
    """The same messages, under the names of v1."""
    text = text_format.MessageToString(draft).replace("v1alpha", "v1")
    final = text_format.Parse(text, FileDescriptorProto())
    final.options.ClearField("deprecated")
    return final
