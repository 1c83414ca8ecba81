"""Accepting: in batches, with handshakes at the same time, through errors, and until the queue is empty."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import select
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from msx_net.connections import sweep
from msx_net.connections.accept_loop import BATCH
from msx_net.connections.refuse import refuse_new
from msx_net.listening.address import Address
from msx_net.listening.bind import bind
from tests.certificates import Certificate, write_pem
from tests.loops import run
from tests.net.connections.echoing import accepting, listening

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


class Failing(socket.socket):
    """A listening socket whose `accept` fails with these errors first."""

    def __init__(self, *errors: int) -> None:
        bound = listening()
        super().__init__(fileno=bound.detach())
        self.setblocking(False)
        self.errors = list(errors)

    def accept(self) -> tuple[socket.socket, Any]:
        if self.errors:
            error = self.errors.pop(0)
            raise OSError(error, "it fails")
        return super().accept()


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return Certificate.make()


@pytest.fixture
def server_tls(certificate: Certificate, tmp_path: Path) -> ssl.SSLContext:
    key, chain = write_pem(certificate, tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return context


@pytest.fixture
def client_tls(certificate: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificate.pem.decode())


@LOOPS
def test_many_connections_at_once(loop: str) -> None:
    async def test() -> None:
        async with accepting() as server:
            answers = await asyncio.gather(*(server.ask(b"x", 6) for _ in range(3 * BATCH)))
            assert set(answers) == {b"echo x"}

    run(test(), loop)


@LOOPS
def test_a_unix_socket(loop: str, tmp_path: Path) -> None:
    async def test() -> None:
        path = str(tmp_path / "s")
        async with accepting(sock=bind("inference", Address("unix", path=path))):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"x")
            assert await reader.readexactly(6) == b"echo x"
            writer.close()
            await writer.wait_closed()

    run(test(), loop)


@LOOPS
def test_what_the_kernel_has_accepted_is_accepted_before_the_socket_is_closed(loop: str) -> None:
    async def test() -> None:
        async with accepting() as server:
            clients = [socket.create_connection(server.address) for _ in range(3 * BATCH)]  # nothing runs meanwhile
            for client in clients:
                client.sendall(b"x")
            await server.loop.stop()
            while len(server.connections) < len(clients):
                await asyncio.sleep(0)
            for client in clients:
                assert await asyncio.to_thread(client.recv, 100) == b"echo x"
                client.close()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(server.address)

    run(test(), loop)


class Late(Failing):
    """A listening socket to which another client connects when its queue is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.late = socket.socket()
        self.late.setblocking(False)

    def accept(self) -> tuple[socket.socket, Any]:
        try:
            return super().accept()
        except BlockingIOError:
            if self.late.getsockname()[1] == 0:
                self.late.connect_ex(self.getsockname())
            raise


@LOOPS
def test_who_connects_when_the_queue_is_empty_is_refused_and_not_reset(loop: str) -> None:
    async def test() -> None:
        sock = Late()
        async with accepting(sock=sock) as server:
            await server.loop.stop()
            await asyncio.to_thread(select.select, [], [sock.late], [], 30)
            assert sock.late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
            assert not server.connections
            sock.late.close()

    run(test(), loop)


@LOOPS
def test_who_connects_to_a_unix_socket_when_its_queue_is_empty_is_refused(loop: str, tmp_path: Path) -> None:
    async def test() -> None:
        path = str(tmp_path / "s")
        sock = bind("inference", Address("unix", path=path))
        async with accepting(sock=sock) as server:
            waiting = socket.socket(socket.AF_UNIX)
            waiting.connect(path)  # nothing runs meanwhile
            refuse_new(sock)
            with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
                late.connect(path)
            waiting.sendall(b"x")
            await server.loop.stop()
            assert await asyncio.to_thread(waiting.recv, 100) == b"echo x"
            waiting.close()

    run(test(), loop)


@LOOPS
@pytest.mark.parametrize("error", [errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS])
def test_an_error_of_accept_does_not_end_accepting(loop: str, error: int, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with accepting(sock=Failing(error, error, error)) as server:
            assert await server.ask(b"x", 6) == b"echo x"

    run(test(), loop)
    told = [record.getMessage() for record in caplog.records]
    assert bool(told) == (error != errno.ECONNABORTED), "a client that has left is not worth a word"


@LOOPS
def test_half_handshakes_do_not_delay_others(loop: str, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    async def test() -> None:
        async with accepting(server_tls) as server:
            halves = [await server.connect() for _ in range(200)]
            for _, writer in halves[::2]:
                writer.write(b"\x16\x03\x01")
            assert await server.ask(b"x", 6, client_tls) == b"echo x"
            assert len(server.connections) >= len(halves), "they count as connections"
            for _, writer in halves:
                writer.transport.abort()

    run(test(), loop)


@LOOPS
def test_a_handshake_has_a_time(
    loop: str, server_tls: ssl.SSLContext, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "EVERY", 0.01)

    async def test() -> None:
        async with accepting(server_tls, timeout=0.05) as server:
            reader, writer = await server.connect()
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            await server.connections.until_empty(5)
            assert not server.connections
            writer.close()

    with caplog.at_level(logging.INFO, "msx.connections"):
        run(test(), loop)
    assert "did not complete the TLS handshake within 0.05 s (tls_handshake_timeout)" in caplog.text


def test_a_handshake_is_not_late_while_the_server_is_held_up(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    """Its first bytes may stand in the socket."""

    async def test() -> None:
        async with accepting(server_tls, timeout=10) as server:
            _, writer = await server.connect()
            while not server.connections:
                await asyncio.sleep(0.001)
            (handshake,) = server.connections
            now = asyncio.get_running_loop().time() + 1000
            handshake.forgive(999, now)
            handshake.look(now)
            assert server.connections
            handshake.look(now + 10)
            await server.connections.until_empty(5)
            assert not server.connections
            writer.close()

    run(test())
