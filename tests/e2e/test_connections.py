"""Connections of a real server: their limit, TLS handshakes that nobody completes, and the end by SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from msx_net.connections.connection import ON_ITS_WAY
from tests.certificates import Certificate, write_pem
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, start_server, wait_until

pytestmark = pytest.mark.e2e

PING = b"GET /ping HTTP/1.1\r\nhost: x\r\n\r\n"


def address_of(server: RunningServer) -> tuple[str, int]:
    host, _, port = server.info["inference"].rpartition("//")[2].rpartition(":")
    return host, int(port)


@contextmanager
def idle_clients(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as clients:
        yield [clients.enter_context(socket.create_connection(address, 30)) for _ in range(count)]


def ask(address: tuple[str, int], request: bytes = PING, pause: float = 0.0) -> str:
    """The status line, or how the connection ended without one; "late" where this client itself took so long to send
    that the server might close it as idle."""
    begun = time.monotonic()
    try:
        client = socket.create_connection(address, 30)
    except ConnectionRefusedError:
        return "refused"
    with client:
        time.sleep(pause)
        try:
            try:
                client.sendall(request)
            finally:
                sent = time.monotonic()
            outcome = client.recv(1 << 16).partition(b"\r\n")[0].decode() or "closed"
        except ConnectionError as error:
            outcome = type(error).__name__
    return outcome if outcome.startswith("HTTP/") or sent - begun < ON_ITS_WAY / 2 else "late"


def closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(100) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("descriptors", [40, 80])
def test_more_clients_than_descriptors(tmp_path: Path, descriptors: int) -> None:
    """The server answers others while they are connected, starts a worker, and recovers when they have left."""
    model = descriptors > 40
    if model:
        pack_service("echo", new_store(tmp_path), config="minWorkers: 1\nmaxWorkers: 1\n")
    flags = ["--models", "echo.mar"] if model else []
    with run_server(tmp_path, *flags, descriptors=descriptors) as server:
        address = address_of(server)
        server.inference.close()  # its connection would be one of those that end
        with idle_clients(address, descriptors) as clients:
            assert ask(address) == "HTTP/1.1 200 OK"
            assert any(map(closed, clients)), "the longest idle are closed"
            if model:
                (pid,) = server.worker_pids("echo")
                server.kill_worker(pid, "echo")
        assert ask(address) == "HTTP/1.1 200 OK"
        wait_until(lambda: server.metric("msx_connections", listener="inference") < 3, "their connections are gone")
        assert server.metric("msx_connections_shed_total") > 0
    log = (tmp_path / "server.log").read_text()
    assert "No more connections are accepted until others end" in log
    assert "Too many open files" not in log


def test_thousands_of_idle_connections(tmp_path: Path) -> None:
    with run_server(tmp_path, properties="max_connections=1000\n") as server:
        address = address_of(server)
        with idle_clients(address, 3000) as clients:
            assert ask(address) == "HTTP/1.1 200 OK"
            left = [client for client in clients if not closed(client)]
            assert len(left) <= 1000
            assert clients[-1] in left, "the longest idle end first"
            assert server.metric("msx_connections") <= 1000


def test_half_tls_handshakes_are_cut(tmp_path: Path) -> None:
    own = Certificate.make()
    key, certificate = write_pem(own, tmp_path)
    tls = f"private_key_file={key}\ncertificate_file={certificate}\ntls_handshake_timeout=3\n"
    with run_server(tmp_path, properties=f"inference_address=https://127.0.0.1:0\n{tls}") as server:
        address = address_of(server)
        with idle_clients(address, 200) as clients:
            for client in clients[::2]:
                client.sendall(b"\x16\x03\x01")
            context = ssl.create_default_context(cadata=own.pem.decode())
            with context.wrap_socket(socket.create_connection(address), server_hostname="localhost") as other:
                other.sendall(PING)
                assert other.recv(100).startswith(b"HTTP/1.1 200")
            wait_until(lambda: all(map(closed, clients)), "the handshakes are cut")
        assert "did not complete the TLS handshake within 3 s (tls_handshake_timeout)" in server.log.read_text()


def test_a_stall_of_the_server_is_not_counted_against_its_clients(tmp_path: Path) -> None:
    """Requests that came while it was stopped stand in its sockets for longer than any of their times."""
    pack_service("echo", new_store(tmp_path))
    limits = "request_head_timeout=4\nrequest_body_grace=4\nkeep_alive_timeout=4\n"
    head = b"POST /predictions/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 2000\r\n\r\n"
    with run_server(tmp_path, "--models", "echo.mar", properties=limits) as server:
        address, pid = address_of(server), server.info["pid"]
        server.inference.close()
        with idle_clients(address, 60) as clients:
            bodies, heads, idle = clients[::3], clients[1::3], clients[2::3]
            for one in idle:
                one.sendall(PING)
                with one.makefile("rb") as reply:
                    assert reply.readline().startswith(b"HTTP/1.1 200")
                    while reply.readline() != b"}\n":
                        pass
            for body, begun in zip(bodies, heads, strict=True):
                body.sendall(head)
                begun.sendall(PING[:-2])
            os.kill(pid, signal.SIGSTOP)
            try:
                stopped = time.monotonic()
                for sent, waiting in ((b"x" * 2000, bodies), (b"\r\n", heads), (PING, idle)):
                    for one in waiting:
                        one.sendall(sent)
                wait_until(lambda: time.monotonic() > stopped + 5, "all times are over")
            finally:
                os.kill(pid, signal.SIGCONT)
            outcomes = [one.recv(1 << 16).partition(b"\r\n")[0] for one in clients]
        assert outcomes == [b"HTTP/1.1 200 OK"] * 60


def test_nobody_is_reset_by_sigterm(tmp_path: Path) -> None:
    """Clients that connect, and send, around the moment of the signal have an answer, or were refused."""
    new_store(tmp_path)
    server = start_server(tmp_path)
    try:
        address = address_of(server)
        pauses = (0.0, 0.0, 0.001, 0.005, 0.02)
        with ThreadPoolExecutor(32) as clients:
            asked = [clients.submit(ask, address, PING, pauses[number % 5]) for number in range(600)]
            wait_until(lambda: sum(one.done() for one in asked) > 100, "many are served")
            server.process.send_signal(signal.SIGTERM)
            outcomes = [one.result() for one in asked]
        assert server.process.wait(30) == 0
    finally:
        server.kill()
        server.close()
    assert set(outcomes) <= {"HTTP/1.1 200 OK", "HTTP/1.1 503 Service Unavailable", "refused", "late"}
    assert outcomes.count("HTTP/1.1 200 OK") > 100
