"""The messages of a client, one by one, as fast as the method takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.direct.compression import IDENTITY, InvalidData, decompress
from msx_frontend.net.grpc.direct.framing import PREFIX, MessageReader, ReceivedMessage, not_compressed, too_large
from msx_frontend.net.grpc.refused import Refused
from msx_frontend.queueing.notifier import Notifier


class RequestMessages:
    """An async iterator of them, decompressed. It raises Refused.

    `consumed` gives the client room for so many bytes more, when a message has been taken.
    """

    def __init__(self, encoding: str, limit: int, consumed: Callable[[int], None]) -> None:
        self._encoding = encoding
        self._limit = limit
        self._consumed = consumed
        self._reader = MessageReader(limit)
        self._ready: deque[ReceivedMessage] = deque()
        self._ended = False
        self._refused: Refused | None = None
        self._notifier = Notifier()

    # -- what the stream calls --

    def feed(self, data: bytes) -> None:
        if self._refused is None:
            try:
                self._ready += self._reader.feed(data)
            except Refused as refused:
                self._refused = refused
        self._notifier.notify()

    def end(self) -> None:
        """The client has sent all."""
        self._ended = True
        if self._refused is None:
            try:
                self._reader.end()
            except Refused as refused:
                self._refused = refused
        self._notifier.notify()

    # -- what the method calls --

    def __aiter__(self) -> RequestMessages:
        return self

    async def __anext__(self) -> bytes:
        if not await self._available():
            raise StopAsyncIteration
        received = self._ready.popleft()
        self._consumed(PREFIX + len(received.data))
        return await self._decompressed(received.data) if received.compressed else received.data

    async def _available(self) -> bool:
        while not self._ready:
            if self._refused is not None:
                raise self._refused
            if self._ended:
                return False
            await self._notifier.wait()
        return True

    async def _decompressed(self, data: bytes) -> bytes:
        if self._encoding == IDENTITY:
            raise not_compressed()
        try:
            unpacked = await asyncio.to_thread(decompress, data, self._encoding, self._limit)
        except InvalidData as error:
            raise Refused(Code.INTERNAL, f"A message is not {self._encoding} data: {error}.") from None
        if unpacked is None:
            raise too_large(self._limit + 1, self._limit)
        return unpacked
