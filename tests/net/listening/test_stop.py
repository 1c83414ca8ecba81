"""The end of a listener: whoever has connected, and whatever has been sent, has an answer."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from msx_net.connections import connection as any_connection
from msx_net.connections.limits import ConnectionLimits
from msx_net.connections.open_connections import ListenerConnections
from msx_net.http.v2.listener import RestHttp2
from msx_net.http.wire import Receive, Scope, Send, send_whole
from msx_net.http2 import connection as http2
from msx_net.http2 import frames
from msx_net.http2.errors import ErrorCode
from msx_net.http2.frames import PREFACE
from msx_net.http2.header_blocks import encode_headers
from msx_net.listening.address import Address
from msx_net.listening.listener import Listener
from tests.loops import run
from tests.net.connections.echoing import Echoing

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
ANY_PORT = Address("http", "127.0.0.1", 0)
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
CLIENTS = 200


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send_whole(send, 200, [], b"hello")


class EchoingHttp2:
    def connect(self, connections: ListenerConnections) -> asyncio.Protocol:
        return Echoing(b"HTTP/2", connections)

    async def stop(self) -> None: ...


async def started() -> Listener:
    listener = Listener("inference", ANY_PORT, hello, http2=EchoingHttp2())
    await listener.start()
    return listener


def connect(listener: Listener) -> socket.socket:
    """Without the loop, which accepts later."""
    return socket.create_connection((listener.address.host, listener.address.port or 0))


async def ask(client: socket.socket) -> None:
    """The connection is idle when this returns."""
    client.sendall(GET)
    answer = b""
    while not answer.endswith(b"hello"):
        answer += await asyncio.to_thread(client.recv, 1 << 16)


def read(client: socket.socket) -> bytes:
    """All that comes. Raises ConnectionResetError."""
    client.settimeout(60)
    answer = b""
    while piece := client.recv(1 << 16):
        answer += piece
    client.close()
    return answer


@LOOPS
def test_nobody_who_had_connected_is_reset(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the requests stand in the sockets when the listener stops, the others come shortly after."""
    monkeypatch.setattr(any_connection, "ON_ITS_WAY", 60)  # however long the machine takes to connect all

    async def test() -> None:
        listener = await started()
        kept = connect(listener)
        await ask(kept)
        clients = [connect(listener) for _ in range(CLIENTS)]
        for client in clients[::2]:
            client.sendall(GET)
        stopping = asyncio.create_task(listener.stop(5))
        await asyncio.sleep(0)
        for client in [*clients[1::2], kept]:
            client.sendall(GET)
        answers = await asyncio.gather(*(asyncio.to_thread(read, client) for client in [*clients, kept]))
        assert {(answer[:15], b"connection: close" in answer) for answer in answers} == {(b"HTTP/1.1 200 OK", True)}
        await stopping
        with pytest.raises(ConnectionRefusedError):
            connect(listener)

    run(test(), loop)


@LOOPS
@pytest.mark.parametrize("late", [0, 100], ids=["the end", "the time of idle connections"])
def test_a_request_that_nobody_has_read_yet_is_answered(loop: str, late: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came while the loop was held up, on a connection that had been idle for so long that it is closed."""

    async def test() -> None:
        listener = await started()
        clients = [connect(listener), connect(listener)]
        await ask(clients[0])
        while len(listener._connections) < 2:
            await asyncio.sleep(0)
        monkeypatch.setattr(any_connection, "ON_ITS_WAY", 0.05)
        for client in clients:
            client.sendall(GET)
        time.sleep(0.1)  # the loop is held up
        for connection in list(listener._connections):
            if late:
                connection.look(asyncio.get_running_loop().time() + late)
            else:
                connection.shutdown()
        await listener.stop(60)
        assert [read(client)[:15] for client in clients] == [b"HTTP/1.1 200 OK"] * 2

    run(test(), loop)


@LOOPS
def test_what_is_idle_ends_at_once(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that have said nothing, that have begun a preface, and that have had a reply."""

    async def test() -> None:
        listener = await started()
        idle = [connect(listener) for _ in range(3)]
        idle[1].sendall(PREFACE[:5])
        await ask(idle[2])
        monkeypatch.setattr(any_connection, "ON_ITS_WAY", 0)
        await listener.stop(60)
        assert [read(client) for client in idle] == [b"", b"", b""]

    run(test(), loop)


@LOOPS
def test_a_connection_that_is_gone_is_shut_down(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a timer of its own does."""

    async def test() -> None:
        listener = await started()
        client = connect(listener)
        await ask(client)
        (connection,) = listener._connections
        client.close()
        assert await listener._connections.until_empty(10)
        monkeypatch.setattr(any_connection, "ON_ITS_WAY", 0)
        connection.shutdown()
        await listener.stop(1)

    run(test(), loop)


@LOOPS
def test_the_protocol_is_chosen_and_ended_by_the_listener(loop: str) -> None:
    async def test() -> None:
        listener = await started()
        client = connect(listener)
        client.sendall(PREFACE)
        assert await asyncio.to_thread(client.recv, 100) == b"HTTP/2 " + PREFACE
        await listener.stop(1)
        assert read(client) == b""

    run(test(), loop)


@LOOPS
@pytest.mark.parametrize(("sent", "answer"), [(b"", b""), (b"P", b"HTTP/1.1 408 "), (b"GET", b"HTTP/1.1 408 ")])
def test_the_time_of_the_first_head_begins_with_the_accept(loop: str, sent: bytes, answer: bytes) -> None:
    async def test() -> None:
        listener = await started()
        client = connect(listener)
        client.sendall(sent)
        connections = listener._connections
        while not connections:
            await asyncio.sleep(0)
        for _ in range(10):  # turns of the loop, in which it reads what has come
            await asyncio.sleep(0.005)
        now = asyncio.get_running_loop().time()
        for later in (19, 21, 22):
            for connection in list(connections):
                connection.look(now + later)
            assert len(connections) == 1 or later > 19
            await asyncio.sleep(0.01)
        assert (await asyncio.to_thread(read, client)).startswith(answer)
        await listener.stop(1)

    run(test(), loop)


@LOOPS
def test_http2_clients_are_told_which_stream_is_the_last(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests stand in the sockets when the listener stops, and they do not answer its PING."""
    monkeypatch.setattr(http2, "ROUND_TRIP", 0.1)
    fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"x")]
    request = frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, encode_headers(fields))
    hello_h2 = PREFACE + frames.frame(frames.SETTINGS, 0, 0) + request

    async def test() -> None:
        listener = Listener("inference", ANY_PORT, hello, http2=RestHttp2(hello, None, ConnectionLimits(), 1 << 20))
        await listener.start()
        clients = [connect(listener) for _ in range(50)]
        for client in clients:
            client.sendall(hello_h2)
        stopping = asyncio.create_task(listener.stop(5))
        for answer in await asyncio.gather(*(asyncio.to_thread(read, client) for client in clients)):
            assert b"hello" in answer
            assert frames.goaway(1, ErrorCode.NO_ERROR, "shutting down") in answer
        await stopping

    run(test(), loop)
