"""How agents connect: with the server, and those of other ranks with the one of rank 0."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import msgspec

from msx_frontend.cluster.agent_messages import HELLO, WELCOME, Hello
from msx_frontend.cluster.tls import check_pin, client_context, tune

ANSWER = 10.0
"""Seconds for each step: connecting, the handshake, and the welcome."""

P = TypeVar("P", bound=asyncio.BaseProtocol)


@dataclass(frozen=True)
class DialTarget:
    """Where to dial: the first of the addresses that answers, with the certificate of this pin."""

    addresses: Sequence[str]
    port: int
    pin: str


class _Knock(asyncio.Protocol):
    def __init__(self, hello: Hello) -> None:
        self._hello = msgspec.json.encode(hello).ljust(HELLO)
        self.welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None
        self.rest = b""
        """What came with the welcome, for the protocol that takes the place of this one."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def knock(self) -> None:
        assert self.transport is not None
        self.transport.write(self._hello)

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.pause_reading()
        if self.welcome.done():
            self.rest += data
        elif data.startswith(WELCOME):
            self.rest = data[len(WELCOME) :]
            self.welcome.set_result(None)
        else:
            self.welcome.set_exception(ConnectionError("it answered something else than a welcome"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.welcome.done():
            self.welcome.set_exception(ConnectionError("it closed the connection"))


async def dial(target: DialTarget, hello: Hello, protocol: P) -> P:
    """Connects the protocol, and returns it. Raises ConnectionError with a sentence."""
    failures = []
    for address in target.addresses:
        try:
            return await _dial(address, target, hello, protocol)
        except (OSError, asyncio.TimeoutError) as error:
            failures.append(f"{address}:{target.port}: {error or 'no answer'}")
    raise ConnectionError("; ".join(failures))


async def _dial(address: str, target: DialTarget, hello: Hello, protocol: P) -> P:
    loop = asyncio.get_running_loop()
    connecting = loop.create_connection(lambda: _Knock(hello), address, target.port, ssl=client_context())
    transport, knock = await asyncio.wait_for(connecting, ANSWER)
    try:
        check_pin(transport, target.pin)
        tune(transport)
        knock.knock()
        await asyncio.wait_for(knock.welcome, ANSWER)
        if transport.is_closing():
            raise ConnectionError("it closed the connection")  # which the next protocol would not be told
    except BaseException:
        transport.abort()
        raise
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if knock.rest:
        _feed(protocol, knock.rest)
    transport.resume_reading()
    return protocol


def _feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    if isinstance(protocol, asyncio.BufferedProtocol):
        while data:
            space = memoryview(protocol.get_buffer(len(data)))
            count = min(len(space), len(data))
            space[:count] = data[:count]
            protocol.buffer_updated(count)
            data = data[count:]
    else:
        cast(asyncio.Protocol, protocol).data_received(data)
