"""Calls over gRPC, on an asyncio loop."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import grpc
import grpc.aio

from msx_client.address import Address, Part
from msx_client.call import RpcCall
from msx_client.grpc.channels import OPTIONS, Channeling, metadata_of, translated
from msx_client.keys import Keys

T = TypeVar("T")


class AsyncRpcTransport:
    """One channel to each address, made when it is first used. Raises MsxError."""

    def __init__(self, address: Address, keys: Keys, wiring: Channeling) -> None:
        self._address, self._keys, self._wiring = address, keys, wiring
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def run(self, call: RpcCall[T], timeout: float | None) -> T:
        limit = self._wiring.timeout if timeout is None else timeout
        make = self._channel(call.part).unary_unary(call.method, _serialize, call.response.FromString)
        try:
            return call.read(await make(call.request, timeout=limit, metadata=self._metadata(call.part)))
        except grpc.RpcError as error:
            raise translated(error, self._address.of(call.part), limit) from None

    async def stream(self, call: RpcCall[T], timeout: float | None) -> AsyncIterator[T]:
        limit = self._wiring.timeout if timeout is None else timeout
        make = self._channel(call.part).unary_stream(call.method, _serialize, call.response.FromString)
        replies = make(call.request, timeout=limit, metadata=self._metadata(call.part))
        try:
            async for reply in replies:
                yield call.read(reply)
        except grpc.RpcError as error:
            raise translated(error, self._address.of(call.part), limit) from None
        finally:
            replies.cancel()

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close(None)

    def _metadata(self, part: Part) -> tuple[tuple[str, str], ...]:
        return metadata_of(self._keys.of(part), self._wiring.headers)

    def _channel(self, part: Part) -> grpc.aio.Channel:
        target = self._address.of(part)
        if target not in self._channels:
            secure = self._wiring.credentials
            self._channels[target] = (
                grpc.aio.insecure_channel(target, OPTIONS)
                if secure is None
                else grpc.aio.secure_channel(target, secure, OPTIONS)
            )
        return self._channels[target]


def _serialize(request: Any) -> bytes:
    content: bytes = request.SerializeToString()
    return content
