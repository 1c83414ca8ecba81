"""A connection of an agent that has said the key."""

import asyncio
from typing import cast


class AgentStream:
    """An accepted connection. `connect` gives it to its reader (a `ByteStream` of the launcher)."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self._taken = False
        self._early = b""

    async def connect(self, reader: asyncio.BaseProtocol) -> None:
        if self._taken or self.transport.is_closing():
            raise ConnectionError("The connection with the node has ended.")
        self._taken = True
        self.transport.set_protocol(reader)
        reader.connection_made(self.transport)
        if self._early:
            feed(reader, self._early)
        self.transport.resume_reading()

    def keep(self, data: bytes) -> None:
        """Keep bytes that a loop had decrypted before it paused reading."""
        self._early += data

    def close(self) -> None:
        """Unless it was connected: then its reader closes it."""
        if not self._taken:
            self.transport.abort()


def feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    """Give the protocol bytes that were read before it was there."""
    if isinstance(protocol, asyncio.BufferedProtocol):
        while data:
            space = memoryview(protocol.get_buffer(len(data)))
            count = min(len(space), len(data))
            space[:count] = data[:count]
            protocol.buffer_updated(count)
            data = data[count:]
    else:
        cast(asyncio.Protocol, protocol).data_received(data)
