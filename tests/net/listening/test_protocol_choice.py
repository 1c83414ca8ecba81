"""HTTP/2 or HTTP/1.1: by ALPN, or by the first bytes, however they come."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from msx_net.connections.open_connections import ListenerConnections
from msx_net.http2.frames import PREFACE
from msx_net.listening.protocol_choice import ProtocolChoice
from msx_net.tls.identity import TlsIdentity
from msx_net.tls.listeners import ListenerTls
from tests.certificates import Certificate
from tests.loops import run
from tests.net.connections.echoing import Echoing, accepting

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
POST = b"POST / HTTP/1.1\r\nhost: x\r\n\r\n"


def choice(connections: ListenerConnections, timeout: float = 20.0) -> ProtocolChoice:
    return ProtocolChoice(
        lambda accepted: Echoing(b"HTTP/1.1", connections),
        lambda: Echoing(b"HTTP/2", connections),
        connections,
        timeout,
    )


@LOOPS
@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (POST, b"HTTP/1.1"),
        (b"PUT / HTTP/1.1\r\n\r\n", b"HTTP/1.1"),
        (b"G", b"HTTP/1.1"),
        (PREFACE, b"HTTP/2"),
        (PREFACE + b"frames", b"HTTP/2"),
        (b"PRI * HTTP/2.0\r\n\r\nSN", b"HTTP/1.1"),
    ],
)
def test_clear_text(loop: str, sent: bytes, name: bytes) -> None:
    async def test() -> None:
        async with accepting(connect=choice) as server:
            assert await server.ask(sent, len(name) + 1 + len(sent)) == name + b" " + sent
            assert (await server.ask(sent, len(name))) == name

    run(test(), loop)


@pytest.mark.parametrize(("sent", "name"), [(POST, b"HTTP/1.1"), (PREFACE + b"frames", b"HTTP/2")])
def test_byte_by_byte(sent: bytes, name: bytes) -> None:
    """Bytes from before the choice are handed over with those that made it."""

    class Transport(asyncio.Transport):
        protocol: asyncio.BaseProtocol
        written = b""

        def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
            self.protocol = protocol

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.written += bytes(data).removeprefix(name + b" ")

    async def test() -> None:
        connections, transport = ListenerConnections(), Transport()
        transport.protocol = protocol = choice(connections)
        protocol.connection_made(transport)
        for byte in sent:
            assert isinstance(transport.protocol, asyncio.Protocol)
            transport.protocol.data_received(bytes([byte]))
        assert transport.written == sent
        assert list(connections) == [transport.protocol]
        assert isinstance(transport.protocol, Echoing)
        assert transport.protocol.name == name

    run(test())


@LOOPS
def test_a_client_that_says_nothing_is_closed_after_its_time(loop: str) -> None:
    async def test() -> None:
        async with accepting(connect=lambda connections: choice(connections, timeout=20.0)) as server:
            reader, writer = await server.connect()
            others, other = await server.connect()
            other.write(b"P")
            while sorted(getattr(one, "_first", b"") for one in server.connections) != [b"", b"P"]:
                await asyncio.sleep(0)
            now = asyncio.get_running_loop().time()
            for connection in list(server.connections):
                connection.look(now + 19)
            await asyncio.sleep(0)
            assert len(server.connections) == 2
            for connection in list(server.connections):
                connection.look(now + 21)
            assert await reader.read() == b""
            assert await others.readexactly(10) == b"HTTP/1.1 P", "its protocol says that it is late"
            for one in (writer, other):
                one.close()

    run(test(), loop)


@LOOPS
@pytest.mark.parametrize(
    ("offered", "name"),
    [(["h2", "http/1.1"], b"HTTP/2"), (["http/1.1"], b"HTTP/1.1"), (["spdy/3"], b"HTTP/1.1"), ([], b"HTTP/1.1")],
)
def test_alpn(loop: str, offered: list[str], name: bytes) -> None:
    own = Certificate.make()

    async def test() -> None:
        tls = ListenerTls(TlsIdentity(own.key_pem, own.pem)).context("h2", "http/1.1")
        client = ssl.create_default_context(cadata=own.pem.decode())
        if offered:
            client.set_alpn_protocols(offered)
        async with accepting(tls, connect=choice) as server:
            assert await server.ask(b"x", len(name) + 2, client) == name + b" x"

    run(test(), loop)
