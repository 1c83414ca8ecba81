"""The messages of a client, one by one, as fast as the method takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from msx_core.replies.notifier import Notifier
from msx_net.connections import turns
from msx_net.grpc.codes import Code
from msx_net.grpc.direct.compression import IDENTITY, InvalidData, decompress
from msx_net.grpc.direct.framing import PREFIX, MessageReader, ReceivedMessage, not_compressed, too_large
from msx_net.grpc.refused import Refused


class RequestMessages:
    """An async iterator of them, decompressed. It raises Refused.

    `consumed` gives the client room for so many bytes more, when a message has been taken.
    """

    def __init__(self, encoding: str, limit: int, consumed: Callable[[int], None]) -> None:
        self._encoding = encoding
        self._limit = limit
        self._consumed = consumed
        self._reader = MessageReader(limit)
        self._ended = False
        self._notifier = Notifier()
        self._turn_began = perf_counter()

    # -- what the stream calls --

    def feed(self, data: bytes) -> None:
        self._reader.add(data)
        self._notifier.notify()

    def end(self) -> None:
        """The client has sent all."""
        self._ended = True
        self._notifier.notify()

    # -- what the method calls --

    def __aiter__(self) -> RequestMessages:
        return self

    async def __anext__(self) -> bytes:
        if perf_counter() - self._turn_began > turns.TURN:
            await self._let_others()
        received = await self._next()
        if received is None:
            raise StopAsyncIteration
        self._consumed(PREFIX + len(received.data))
        return await self._decompressed(received.data) if received.compressed else received.data

    async def _next(self) -> ReceivedMessage | None:
        """None behind the last one. Raises Refused."""
        while (received := self._reader.next()) is None:
            if self._ended:
                self._reader.end()
                return None
            await self._notifier.wait()
            self._turn_began = perf_counter()
        return received

    async def _let_others(self) -> None:
        """A method may take many small messages without waiting for anything."""
        await turns.let_others()
        self._turn_began = perf_counter()

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
