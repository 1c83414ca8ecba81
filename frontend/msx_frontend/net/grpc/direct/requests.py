"""The messages of a client, one by one, at the pace of whoever takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from msx_frontend.net.grpc.codes import Code
from msx_frontend.net.grpc.direct.compression import IDENTITY, Damaged, decompress
from msx_frontend.net.grpc.direct.framing import PREFIX, MessageReader, Received, too_large
from msx_frontend.net.grpc.direct.refused import Refused
from msx_frontend.queueing.notifier import Notifier


class Requests:
    """An async iterator of the parsed messages, or `only` for the single one of a unary call. Both raise Refused.

    `consumed` gives the client room for so many bytes more, when a message has been taken.
    """

    def __init__(
        self, parse: Callable[[bytes], Any], encoding: str, limit: int, consumed: Callable[[int], None]
    ) -> None:
        self._parse, self._encoding, self._limit, self._consumed = parse, encoding, limit, consumed
        self._reader = MessageReader(limit)
        self._ready: deque[Received] = deque()
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
        """The client has said all."""
        self._ended = True
        if self._refused is None and self._reader.partial:
            self._refused = Refused(Code.INTERNAL, "The request ends in the middle of a message.")
        self._notifier.notify()

    # -- what the method calls --

    def __aiter__(self) -> Requests:
        return self

    async def __anext__(self) -> Any:
        if not await self._available():
            raise StopAsyncIteration
        return await self._take()

    async def only(self) -> Any:
        """The request of a unary call, when the client has said that there is no other."""
        if not await self._available():
            raise not_one("none")
        request = await self._take()
        if await self._available():
            raise not_one("more")
        return request

    async def _available(self) -> bool:
        while not self._ready:
            if self._refused is not None:
                raise self._refused
            if self._ended:
                return False
            await self._notifier.wait()
        return True

    async def _take(self) -> Any:
        received = self._ready.popleft()
        data = received.data
        self._consumed(PREFIX + len(data))
        if received.compressed:
            data = await self._decompressed(data)
        return parsed(self._parse, data)

    async def _decompressed(self, data: bytes) -> bytes:
        if self._encoding == IDENTITY:
            raise Refused(Code.INTERNAL, "A message is marked as compressed, but the call has no grpc-encoding.")
        try:
            unpacked = await asyncio.to_thread(decompress, data, self._encoding, self._limit)
        except Damaged as error:
            raise Refused(Code.INTERNAL, f"A message is no {self._encoding} data: {error}.") from None
        if unpacked is None:
            raise too_large(self._limit + 1, self._limit)
        return unpacked


def parsed(parse: Callable[[bytes], Any], data: bytes) -> Any:
    """Raises Refused."""
    try:
        return parse(data)
    except Exception as error:  # protobuf's DecodeError
        raise Refused(Code.INTERNAL, f"The request is no message of its method's type: {error}.") from None


def not_one(count: str) -> Refused:
    """`count` says how many: none, or more."""
    return Refused(Code.UNIMPLEMENTED, f"The method takes exactly one request, and the client has sent {count}.")
