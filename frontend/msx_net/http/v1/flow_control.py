"""Stops and goes of one connection: of reading, which it decides, and of writing, which its client decides."""

from __future__ import annotations

import asyncio


class TransportFlow:
    __slots__ = ("_transport", "_writable", "held_back", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False
        self.held_back = False
        """Bytes that have come are not parsed yet: no more is read meanwhile."""
        self._writable = asyncio.Event()
        self._writable.set()

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._pause()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._resume()

    def hold_back(self) -> None:
        if not self.held_back:
            self.held_back = True
            self._pause()

    def go_on(self) -> None:
        """All that has come is looked through."""
        if self.held_back:
            self.held_back = False
            self._resume()

    def _pause(self) -> None:
        if self.read_paused is not self.held_back:
            self._transport.pause_reading()

    def _resume(self) -> None:
        if not (self.read_paused or self.held_back or self._transport.is_closing()):
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._writable.clear()

    def resume_writing(self) -> None:
        self.write_paused = False
        self._writable.set()

    async def drain(self) -> None:
        """Wait until the client reads again, or has left."""
        await self._writable.wait()
