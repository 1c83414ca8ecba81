"""How agents connect: with the server, and those of other ranks with the one of rank 0."""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import msgspec

from msx_ray.agent_messages import HELLO, WELCOME, Hello
from msx_ray.agent_stream import feed
from msx_ray.tls import check_pin, client_context, tune

ANSWER = 10.0
"""Seconds for each step: connecting, the handshake, and the welcome."""

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each further try where the connection is closed before the welcome: others may crowd the port, which
closes those that have waited longest."""

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
        """Bytes that came with the welcome, for the protocol that takes the place of this one."""

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
            self.welcome.set_exception(_ClosedError("it closed the connection"))


class _ClosedError(ConnectionError):
    """The other side closed the connection before it said the welcome."""


async def dial(target: DialTarget, hello: Hello, protocol: P) -> P:
    """Connects the protocol, and returns it. Raises ConnectionError with a sentence."""
    failures = []
    for address in target.addresses:
        try:
            return await _dial_again(address, target, hello, protocol)
        except (OSError, asyncio.TimeoutError) as error:
            failures.append(f"{address}:{target.port}: {error or 'no answer'}")
    raise ConnectionError("; ".join(failures))


async def _dial_again(address: str, target: DialTarget, hello: Hello, protocol: P) -> P:
    """Try again where the connection is closed."""
    for pause in PAUSES:
        try:
            return await _dial(address, target, hello, protocol)
        except _ClosedError:
            await asyncio.sleep(pause)
    return await _dial(address, target, hello, protocol)


async def _dial(address: str, target: DialTarget, hello: Hello, protocol: P) -> P:
    loop = asyncio.get_running_loop()
    connecting = loop.create_connection(lambda: _Knock(hello), address, target.port, ssl=client_context())
    try:
        transport, knock = await asyncio.wait_for(connecting, ANSWER)
    except (ConnectionResetError, ConnectionAbortedError, ssl.SSLEOFError) as error:
        raise _ClosedError("it closed the connection") from error
    try:
        check_pin(transport, target.pin)
        tune(transport)
        knock.knock()
        await asyncio.wait_for(knock.welcome, ANSWER)
        if transport.is_closing():
            raise _ClosedError("it closed the connection")  # which the next protocol would not be told
    except BaseException:
        transport.abort()
        raise
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if knock.rest:
        feed(protocol, knock.rest)
    transport.resume_reading()
    return protocol
