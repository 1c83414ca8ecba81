"""A client that says what a script says, on a real socket."""

from __future__ import annotations

import asyncio

from msx_net.http2 import frames
from tests.conformance.http2.script import Case, Closed, Expected, settings, settings_of
from tests.net.http2.peer import Frame

PATIENCE = 60
"""Seconds for what has to come at once."""

_MARK = b"is alive"


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.settings: dict[int, int] = {}

    async def play(self, case: Case) -> None:
        try:
            await asyncio.wait_for(self._play(case), PATIENCE)
        finally:
            self._writer.close()

    async def _play(self, case: Case) -> None:
        if not case.silent:
            await self._begin()
        for step in case.steps:
            if isinstance(step, bytes):
                self._writer.write(step)
            elif callable(step):
                self._writer.write(step(self))
            else:
                await self._expect(step)

    async def _begin(self) -> None:
        self._writer.write(frames.PREFACE + settings())
        while not self.settings:
            await self._read()
        self._writer.write(frames.frame(frames.SETTINGS, frames.ACK, 0))

    async def _expect(self, expected: Expected) -> None:
        """Read up to the expected frame; those before it may be any that `check` allows."""
        if not isinstance(expected, Closed):
            while not expected.check(await self._frame()):
                pass
        if expected.alive:
            await self._check_alive()
        else:
            assert await self._read() is None, "a frame came behind the last"

    async def _check_alive(self) -> None:
        self._writer.write(frames.frame(frames.PING, 0, 0, _MARK))
        while True:
            frame = await self._frame()
            assert frame.kind != frames.GOAWAY, frame
            if (frame.kind, frame.flags, frame.payload) == (frames.PING, frames.ACK, _MARK):
                return

    async def _frame(self) -> Frame:
        frame = await self._read()
        assert frame is not None, "the connection was closed"
        return frame

    async def _read(self) -> Frame | None:
        """None at the end of the connection."""
        try:
            high, low, kind, flags, stream_id = frames.HEAD.unpack(await self._reader.readexactly(frames.HEAD_SIZE))
            payload = await self._reader.readexactly(high << 8 | low)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        if kind == frames.SETTINGS and not flags & frames.ACK:
            self.settings.update(settings_of(payload))
        return Frame(kind, flags, stream_id, payload)
