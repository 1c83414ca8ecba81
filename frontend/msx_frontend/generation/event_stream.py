"""What a generation says, on its way to a client who reads server-sent events."""

from __future__ import annotations

import asyncio

from msx_frontend.generation.generation import Piece
from msx_frontend.generation.replies import Events
from msx_frontend.net.http.stream_body import StreamBody


class EventStream:
    """What comes in one turn of the loop leaves in one write; what comes before the head has left is held."""

    def __init__(self, reply: Events, body: StreamBody) -> None:
        self._reply, self._body = reply, body
        self._events = reply.events
        self._held = b""
        self._opened = False
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when there is something to write."""
        self.ended = reply.generation.start(self)

    @property
    def full(self) -> bool:
        return self._body.full if self._opened else bool(self._held)

    def said(self, pieces: list[Piece]) -> None:
        if data := self._events.said(pieces):
            self.write(data)

    def write(self, data: bytes) -> None:
        if self._opened:
            self._body.write(data)
            return
        self._held += data
        if not self.begun.done():
            self.begun.set_result(None)

    async def first(self) -> None:
        """Until there is something to write, or the end. Raises the error that comes instead."""
        await asyncio.wait({self.begun, self.ended}, return_when=asyncio.FIRST_COMPLETED)
        if not self.begun.done():
            await self.ended

    async def rest(self) -> None:
        """Open it, to the end. Raises the error that the generation ends with."""
        self._opened = True
        self._body.on_room = self._reply.generation.resume
        try:
            if self._held:
                self._body.write(self._held)
            self._reply.generation.resume()
            await self.ended
        finally:
            self._body.on_room = None
        if last := self._events.ended():
            self._body.write(last)
