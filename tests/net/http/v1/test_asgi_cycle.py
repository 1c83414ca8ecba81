"""Messages that an ASGI app of a connection receives, and the effect of those that it sends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import uvicorn

from msx_core.service_errors import WorkerDied
from msx_net.http.v1.connection import Http1Connection
from msx_net.http.v1.settings import Http1Settings
from msx_net.http.wire import Message, Receive, Scope, Send, StreamBroken, read_body
from tests.loops import run
from tests.net.http.direct_client import FakeTransport, connect

GET = b"GET /a%20b?c=%20 HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%b\r\n"


async def turns() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def said(app: Any, *parts: bytes) -> tuple[bytes, FakeTransport]:
    """Bytes on the wire once the app has done what it can."""
    connection, transport = connect(app, None)
    for part in parts:
        connection.data_received(part)
        await turns()
    written = bytes(transport.written)
    connection.connection_lost(None)
    await turns()
    return written, transport


def replies(status: int, headers: list[tuple[bytes, bytes]], *chunks: bytes) -> Callable[..., Any]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await read_body(receive, None, 1 << 20)
    await replies(200, [(b"content-length", b"%d" % len(body))], body)(scope, receive, send)


SIZED = [(b"content-length", b"2")]
AB = b"content-length: 2\r\nconnection: keep-alive\r\n\r\nab"
LAST = b"content-length: 2\r\nconnection: close\r\n\r\nab"
CHUNKS = b"transfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("app", "request_", "wanted"),
    [
        (replies(200, SIZED, b"ab"), GET, b"200 OK\r\n" + AB),
        (replies(200, [], b"ab", b"", b"c"), GET, b"200 OK\r\n" + CHUNKS),
        (replies(200, [], b"ab"), GET.replace(b"1.1", b"1.0"), b"200 OK\r\nconnection: close\r\n\r\nab"),
        (replies(200, SIZED), GET.replace(b"GET", b"HEAD"), b"200 OK\r\n" + AB[:-2]),
        (replies(204, [], b"ab"), GET, b"204 No Content\r\nconnection: keep-alive\r\n\r\n"),
        (replies(304, [], b"ab"), GET, b"304 Not Modified\r\nconnection: keep-alive\r\n\r\n"),
        (replies(200, [(b"transfer-encoding", b"x"), *SIZED], b"ab"), GET, b"200 OK\r\n" + AB),
        (replies(200, [*SIZED, (b"connection", b"close")], b"ab"), GET, b"200 OK\r\n" + LAST),
        (replies(200, SIZED, b"ab"), GET.replace(b"host", b"connection: TE, Close\r\nhost"), b"200 OK\r\n" + LAST),
        (replies(404, SIZED, b"ab"), POST % (5, b""), b"404 Not Found\r\n" + AB),
        (replies(404, SIZED, b"ab"), POST % (1 << 30, b""), b"404 Not Found\r\n" + LAST),
    ],
)
def test_a_reply(app: Any, request_: bytes, wanted: bytes) -> None:
    written, transport = run(said(app, request_))
    assert written == b"HTTP/1.1 " + wanted
    assert (transport.closed or transport.ended) is (b"connection: close" in wanted)


def test_what_the_app_is_told_of_a_request() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await replies(200, SIZED, b"ab")(scope, receive, send)

    run(said(app, GET.replace(b"host", b"X-Name: V\r\nhost")))
    told = seen[0]
    assert (told["method"], told["path"], told["raw_path"], told["query_string"]) == (
        "GET",
        "/a b",
        b"/a%20b",
        b"c=%20",
    )
    assert told["headers"] == [(b"x-name", b"V"), (b"host", b"x")]
    assert (told["client"], told["server"], told["scheme"]) == (("10.0.0.1", 4711), ("127.0.0.1", 8080), "http")
    assert (told["type"], told["http_version"], told["asgi"]["version"]) == ("http", "1.1", "3.0")


def test_a_body_comes_in_parts_and_then_the_client_leaves() -> None:
    messages: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while not messages or messages[-1]["type"] != "http.disconnect":
            messages.append(await receive())

    run(said(app, POST % (5, b""), b"ab", b"cde"))
    assert [(one.get("body"), one.get("more_body")) for one in messages] == [
        (b"ab", True),
        (b"cde", False),
        (None, None),
    ]


def test_after_the_reply_the_client_has_left() -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await replies(200, SIZED, b"ab")(scope, receive, send)
        seen.append((await receive())["type"])
        with pytest.raises(RuntimeError, match="after the end"):
            await send({"type": "http.response.body", "body": b""})

    run(said(app, GET))
    assert seen == ["http.disconnect"]


def test_a_client_that_waits_for_100_is_asked_for_the_body_when_the_app_wants_it() -> None:
    written, _ = run(said(echo, POST % (2, b"expect: 100-Continue\r\n"), b"ab"))
    assert written.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    refused, _ = run(said(replies(401, SIZED, b"no"), POST % (2, b"expect: 100-continue\r\n")))
    assert refused.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("app", "why"),
    [
        (replies(200, SIZED, b"abc"), "is not as long as its content-length"),
        (replies(200, SIZED, b"a"), "is not as long as its content-length"),
        (replies(200, [(b"a b", b"")]), "does not allow the header b'a b'"),
        (replies(200, [(b"a", b"b\r\nc: d")]), "does not allow the header b'a'"),
    ],
)
def test_what_is_not_a_reply_is_a_bug(app: Any, why: str, caplog: pytest.LogCaptureFixture) -> None:
    written, transport = run(said(app, GET))
    assert transport.closed
    assert b"c: d" not in written
    assert why in str(caplog.records[0].exc_info)


@pytest.mark.parametrize("begun", [True, False])
def test_an_app_that_ends_too_early(begun: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})

    written, transport = run(said(app, GET))
    assert written.startswith(b"HTTP/1.1 200" if begun else b"HTTP/1.1 500")
    assert transport.closed
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_stream_that_was_cut_is_not_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        raise StreamBroken(WorkerDied("It ended."))

    written, transport = run(said(app, GET))
    assert written.endswith(b"3\r\none\r\n")
    assert (transport.closed, caplog.records) == (True, [])


def test_a_large_body_waits_for_the_app() -> None:
    async def test() -> None:
        go = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await go.wait()
            await echo(scope, receive, send)

        connection, transport = connect(app, None)
        connection.data_received(POST % (100_001, b"") + b"x" * 100_000)
        assert connection.flow.read_paused
        go.set()
        await turns()
        assert not connection.flow.read_paused
        connection.data_received(b"x")
        await turns()
        assert transport.written.endswith(b"x" * 100_001)
        connection.connection_lost(None)

    run(test())


def test_bytes_that_are_not_http_are_told_in_their_turn() -> None:
    """They come while a reply is under way, or where the rest of a body should be."""
    written, transport = run(said(echo, GET + b"nonsense\r\n\r\n"))
    assert written.startswith(b"HTTP/1.1 200 ")
    assert written.count(b"HTTP/1.1 400 ") == 1
    assert transport.ended
    chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n"
    written, transport = run(said(echo, chunked, b"nonsense"))
    assert written.startswith(b"HTTP/1.1 400 ")
    assert transport.ended


@pytest.mark.parametrize("idle", [True, False])
def test_a_shutdown(idle: bool) -> None:
    async def test() -> None:
        connection, transport = connect(echo, None)
        connection.data_received(GET + GET if idle else POST % (2, b"") + b"a")
        await turns()
        assert not transport.closed
        connection.shutdown(0)
        assert transport.closed is idle
        if not idle:
            connection.data_received(b"b")
            await turns()
            assert transport.written.endswith(b"connection: close\r\n\r\nab")
            assert transport.closed
        connection.connection_lost(None)

    run(test())


def test_a_request_that_was_on_its_way_at_the_shutdown() -> None:
    """Request of a client that has just connected, or has just read a reply: it is answered, and is the last."""

    async def test() -> None:
        connection, transport = connect(echo, None)
        connection.data_received(GET)
        await turns()
        for _ in range(2):
            connection.shutdown()
        assert not transport.closed
        connection.data_received(GET)
        await turns()
        assert transport.written.endswith(b"connection: close\r\n\r\n")
        assert transport.closed
        connection.connection_lost(None)

    run(test())


def test_a_stream_whose_head_has_promised_more_is_not_the_last() -> None:
    """Its client sends the next request at once: it is answered, and is the last."""

    async def test() -> None:
        go_on = asyncio.Event()

        async def stream(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"1", "more_body": True})
            await go_on.wait()
            await send({"type": "http.response.body", "body": b"2"})

        connection, transport = connect(stream, None)
        connection.data_received(GET)
        await turns()
        connection.shutdown()
        go_on.set()
        await turns()
        connection.shutdown()
        assert not transport.closed
        connection.data_received(GET)
        await turns()
        assert transport.written.count(b"connection: close") == 1
        assert transport.closed
        connection.connection_lost(None)

    run(test())


def test_thousands_of_requests_at_once() -> None:
    """They are answered in their order, and few of them wait, read."""

    async def test() -> None:
        seen = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope["raw_path"])
            await replies(200, SIZED, b"ab")(scope, receive, send)

        connection, transport = connect(app, None)
        sent = b"".join(b"GET /%d HTTP/1.1\r\nhost:x\r\n\r\n" % number for number in range(9000))
        connection.data_received(sent[: 1 << 17])
        assert len(connection._waiting) < 1000
        connection.data_received(sent[1 << 17 :])
        while len(seen) < 9000:
            assert len(connection._waiting) < 1000
            await asyncio.sleep(0)
        await turns()
        assert seen == [b"/%d" % number for number in range(9000)]
        assert transport.written.count(b"HTTP/1.1 200 OK") == 9000
        assert not connection.flow.read_paused
        connection.connection_lost(None)

    run(test())


def test_a_server_of_uvicorn_has_such_connections() -> None:
    """By its public way alone."""

    async def test() -> None:
        http: Any = partial(Http1Connection, Http1Settings())
        server = uvicorn.Server(uvicorn.Config(echo, http=http, port=0, loop="none", lifespan="off", log_config=None))
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.001)
        port = server.servers[0].sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST % (2, b"") + b"ab" + GET)
        seen = b""
        while seen.count(b"HTTP/1.1 200 ") < 2:
            seen += await reader.read(1000)
        assert b"\r\n\r\nab" in seen
        assert b"\r\ndate: " in seen
        assert server.server_state.total_requests == 2
        server.should_exit = True
        await task
        assert await reader.read() == b""
        assert not server.server_state.connections
        writer.close()

    run(test())
