"""The connections on which agents fetch the contents of one generation."""

import asyncio
import logging
from collections.abc import Sequence

from msx_ray.agent_stream import AgentStream
from msx_ray.content_source import ContentSource, Offered

log = logging.getLogger("msx.cluster")

MAX_CONNECTIONS = 256
"""Connections at once, of all agents of a generation."""


class ContentServer:
    """`take` follows a connection until it ends, or `close` ends them all."""

    def __init__(self, offered: Sequence[Offered]) -> None:
        self._source = ContentSource(offered)
        self._open: set[asyncio.Task[None]] = set()
        self._closed = False

    def take(self, stream: AgentStream) -> None:
        if self._closed or len(self._open) >= MAX_CONNECTIONS:
            log.warning("a connection for contents was closed: there are %d", len(self._open))
            return stream.close()
        task = asyncio.create_task(self._serve(stream), name="content")
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return None

    def close(self) -> None:
        self._closed = True
        for task in self._open:
            task.cancel()

    async def _serve(self, stream: AgentStream) -> None:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            await stream.connect(protocol)
        except OSError:
            return
        writer = asyncio.StreamWriter(stream.transport, protocol, reader, asyncio.get_running_loop())
        await self._source.serve(reader, writer)
