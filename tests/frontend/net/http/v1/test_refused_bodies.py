"""Clients that are still writing see why they were refused: over real sockets, clear and by TLS."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable

import pytest

from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from msx_net.tls.identity import TlsIdentity
from msx_net.tls.listeners import ListenerTls
from tests.certificates import Certificate
from tests.frontend.net.predictions import FakeRegistry, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.exchanges import exchange_of

LARGE = b"x" * (8 << 20)
"""More than the buffers of two sockets."""


Context = ssl.SSLContext | None


@contextlib.asynccontextmanager
async def listening(tls: ListenerTls | None) -> AsyncIterator[int]:
    """The port of a listener that takes bodies of a thousand bytes."""
    edge = exchange_of(predictions(FakeRegistry()), log=FakeAccessLog(), limit=1000)
    address = Address("https" if tls else "http", "127.0.0.1", 0)
    listener = Listener("inference", address, edge, tls, edge.direct())
    await listener.start()
    try:
        assert listener.address.port is not None
        yield listener.address.port
    finally:
        await listener.stop(1)


def connected(port: int, tls: Context) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), 30)
    return tls.wrap_socket(sock, server_hostname="127.0.0.1") if tls else sock


def by_urllib(port: int, tls: Context) -> int:
    try:
        urllib.request.urlopen(f"{'https' if tls else 'http'}://127.0.0.1:{port}/predictions/m", LARGE, 30, context=tls)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


def by_chunks(port: int, tls: Context) -> int:
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    )
    connection.request("POST", "/predictions/m", iter([LARGE[: 1 << 20]] * 8), encode_chunked=True)
    status = connection.getresponse().status
    connection.close()
    return status


def by_blind_socket(port: int, tls: Context) -> int:
    """Writes all, then reads to the end."""
    with connected(port, tls) as sock:
        sock.sendall(b"POST /predictions/m HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(LARGE) + LARGE)
        said = b""
        while data := sock.recv(1 << 16):
            said += data
    return int(said.split()[1])


def by_unreadable_head(port: int, tls: Context) -> int:
    with connected(port, tls) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nhost: x\r\nx-large: " + LARGE)
        return int(sock.recv(100).split()[1])


CLIENTS = [(by_urllib, 413), (by_chunks, 413), (by_blind_socket, 413), (by_unreadable_head, 431)]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(("client", "status"), CLIENTS)
def test_a_client_that_is_still_writing_sees_the_reply(client: Callable[..., int], status: int, loop: str) -> None:
    async def test() -> None:
        async with listening(None) as port:
            assert await asyncio.to_thread(client, port, None) == status

    run(test(), loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(("client", "status"), [pair for pair in CLIENTS if pair[0] is not by_blind_socket])
def test_so_does_one_that_speaks_tls(client: Callable[..., int], status: int, loop: str) -> None:
    """Without our end: TLS has none. Who reads to the end waits for QUIET seconds."""
    own = Certificate.make()
    tls = ListenerTls(TlsIdentity(own.key_pem, own.pem))
    trusting = ssl.create_default_context(cadata=own.pem.decode())

    async def test() -> None:
        async with listening(tls) as port:
            assert await asyncio.to_thread(client, port, trusting) == status

    run(test(), loop)
