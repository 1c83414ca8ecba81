"""State shared by the HTTP/2 connections of one REST port."""

from __future__ import annotations

import asyncio
from typing import Protocol

from msx_net.connections.limits import ConnectionLimits
from msx_net.http.app import AsgiApp
from msx_net.http.direct import Direct
from msx_net.http.v2.asgi_stream import AsgiStream
from msx_net.http.v2.blocks import UsualBlock
from msx_net.http.v2.request_head import Fields
from msx_net.http.wire import RawHeaders
from msx_net.http2.connection import Http2Protocol
from msx_net.http2.stream import Stream
from msx_net.http2.stream_events import StreamEvents


class Calls(Protocol):
    """The calls of gRPC on one connection."""

    protocol: Http2Protocol

    def takes(self, headers: Fields) -> bool:
        """Whether a request is a call."""

    def accept(self, stream: Stream, headers: Fields, ended: bool) -> StreamEvents:
        """A call begins."""


class AnswersCalls(Protocol):
    def connection(self) -> Calls:
        """The calls of a new connection; the caller sets `protocol`."""


class Port:
    """`direct` answers jobs without `app`, an app of ASGI."""

    def __init__(self, app: AsgiApp, direct: Direct | None = None, limits: ConnectionLimits | None = None) -> None:
        self._app, self.direct, self.limits = app, direct, limits or ConnectionLimits()
        self.calls: AnswersCalls | None = None
        """The gRPC services of the port; set once they are there."""
        self._usual: dict[tuple[tuple[bytes, bytes], ...], UsualBlock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def usual(self, cors: RawHeaders) -> UsualBlock:
        """One for all requests whose replies have the same CORS headers."""
        key = tuple(cors)
        if (block := self._usual.get(key)) is None:
            block = self._usual[key] = UsualBlock(cors)
        return block

    def run(self, request: AsgiStream) -> None:
        task = asyncio.get_running_loop().create_task(request.run(self._app))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel the tasks that still run the app: their connections are gone."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
