"""Limits of a request's size and time: counted while it is read."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import msgspec
import pytest

from msx_net.connections.connection import ON_ITS_WAY
from msx_net.connections.limits import ConnectionLimits
from msx_net.http.v1.connection import Http1Connection
from msx_net.http.v1.lingering import LONGEST, QUIET
from msx_net.http.wire import Receive, Scope, Send, read_body, send_whole
from tests.frontend.net.predictions import FakeRegistry, predictions
from tests.loops import run
from tests.net.http.client import FakeAccessLog
from tests.net.http.direct_client import FakeTransport, connect, request
from tests.net.http.exchanges import exchange_of

LIMITS = ConnectionLimits(max_request_head_size=4096, max_request_headers=20)
HEAD = b"POST /predictions/m HTTP/1.1\r\nhost: x\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


class Bench:
    """A connection that answers jobs of model `m`, and all else by its app."""

    def __init__(self, limits: ConnectionLimits = LIMITS, limit: int = 100_000) -> None:
        self.registry, self.log = FakeRegistry(), FakeAccessLog()
        edge = exchange_of(predictions(self.registry), log=self.log, limit=limit)
        self.connection, self.transport = connect(edge, edge.direct(), limits)
        self.now = self.connection.loop.time()

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.connection.data_received(part)
            await turns()

    async def look(self, after: float = 0.0) -> None:
        """As the sweep does, so many seconds later."""
        self.now += after
        self.connection.look(self.now)
        await turns()

    @property
    def status(self) -> int:
        """Status of the only reply; 0 if there is none."""
        assert self.transport.written.count(b"HTTP/1.1 ") <= 1
        return int(self.transport.written.split()[1]) if self.transport.written else 0

    @property
    def message(self) -> str:
        told: str = msgspec.json.decode(self.transport.written.partition(b"\r\n\r\n")[2])["message"]
        return told

    @property
    def over(self) -> bool:
        return self.transport.closed or self.transport.ended


async def turns() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


# -- heads --


@pytest.mark.parametrize("size", [1, 100, 5000, 1 << 20])
@pytest.mark.parametrize(
    ("sent", "status", "key"),
    [
        (b"POST /" + b"x" * 5000, 414, "max_request_head_size (4096 bytes)"),
        (HEAD + b"x-large: " + b"x" * 5000, 431, "max_request_head_size (4096 bytes)"),
        (HEAD + b"x" * 5000, 431, "max_request_head_size (4096 bytes)"),
        (HEAD + b"x-small: x\r\n" * 400, 431, "max_request_headers (20)"),
        (HEAD + b"x-small: x\r\n" * 21, 431, "max_request_headers (20)"),
        (HEAD + b"x: " + b"x" * 300 + b"\r\n" + b"x: y\r\n" * 30, 431, "max_request_headers (20)"),
        (CHUNKED + b"1;" + b"x" * 5000, 431, "max_request_head_size (4096 bytes)"),
        (CHUNKED + (b"1;" + b"x" * 200 + b"\r\na\r\n") * 30, 431, "max_request_head_size (4096 bytes)"),
        (CHUNKED + b"0\r\n" + b"x: " + b"x" * 5000, 431, "max_request_head_size (4096 bytes)"),
        (CHUNKED + b"0\r\n" + b"x: y\r\n" * 30, 431, "more trailers than max_request_headers (20)"),
    ],
)
def test_a_head_is_counted_while_it_is_read(sent: bytes, status: int, key: str, size: int) -> None:
    async def test() -> None:
        bench = Bench()
        head = sent.find(b"\r\n\r\n") + 4  # what is behind it in the same piece counts from the next one on
        await bench.send(sent[:head] if head > 3 else b"", *pieces(sent[head:] if head > 3 else sent, size))
        assert bench.status == status
        assert key in bench.message
        assert bench.transport.ended
        assert bench.registry.idle

    run(test())


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_what_is_within_the_limits(size: int) -> None:
    async def test() -> None:
        for fields in (b"x: y\r\n" * 17, b"x: " + b"y" * 3900 + b"\r\n"):
            bench = Bench()
            await bench.send(*pieces(HEAD + fields + b"content-length: 2\r\n\r\nab", size))
            assert (await bench.registry.next_job()).fields[0].data == b"ab"
        bench = Bench()
        chunks = b"1;a=b\r\na\r\n" * 3000 + b"0\r\nx-trailer: 1\r\n\r\n"
        await bench.send(*pieces(CHUNKED + chunks, max(size, 50)))
        job = await bench.registry.next_job()
        assert job.fields[0].data == b"a" * 3000
        assert "x-trailer" not in dict(job.headers)

    run(test())


def test_heads_behind_bodies_have_the_same_room() -> None:
    async def test() -> None:
        bench = Bench()
        one = HEAD + b"x: " + b"y" * 3000 + b"\r\ncontent-length: 3000\r\n\r\n" + b"b" * 3000
        await bench.send(one * 5)
        for _ in range(5):
            job = await bench.registry.next_job()
            assert len(job.fields[0].data) == 3000
            job.answer(200, "", [], b"")
            await turns()
        assert bench.transport.written.count(b"HTTP/1.1 200 ") == 5

    run(test())


def test_a_giant_header_costs_as_much_as_the_limit() -> None:
    async def test() -> None:
        bench = Bench()
        began = time.process_time()
        await bench.send(HEAD + b"x-large: ")
        piece = b"x" * (1 << 18)
        for _ in range(240):
            bench.connection.data_received(piece)
        assert bench.status == 431
        assert bench.connection._reader._counted <= 4096
        assert time.process_time() - began < 1

    run(test())


def test_a_body_of_small_chunks_is_joined() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.send(CHUNKED + b"1\r\na\r\n" * 5000)
        assert bench.connection._answering is not None
        assert len(bench.connection._answering.parts) <= 64

    run(test())


# -- time --


def test_a_connection_that_says_nothing_is_closed_without_a_word() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.look()
        await bench.look(after=19.5)
        assert not bench.over
        await bench.look(after=1)
        assert bench.transport.closed
        assert bench.status == 0

    run(test())


@pytest.mark.parametrize("later", [False, True])
def test_a_slow_head(later: bool) -> None:
    """A byte a second does not help; the time of the first begins with the accept."""

    async def test() -> None:
        bench = Bench()
        if later:
            await bench.send(request("POST", "/predictions/m", b"x"))
            (await bench.registry.next_job()).answer(200, "", [], b"")
            await turns()
            bench.transport.written.clear()
            await bench.look(after=30)
            await bench.send(b"GET / HTTP/1.1\r\nx: y")
            await bench.look(after=1)
        else:
            await bench.send(b"GET / HTTP/1.1\r\nx: y")
        for _ in range(19):
            await bench.send(b"y")
            await bench.look(after=1)
        assert not bench.over
        await bench.look(after=1)
        assert bench.status == 408
        assert "request_head_timeout (20 s)" in bench.message
        assert bench.transport.ended

    run(test())


def test_a_slow_body() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.send(HEAD + b"content-length: 100000\r\n\r\n")
        await bench.look()
        for _ in range(30):
            await bench.send(b"x" * 250)
            await bench.look(after=1)
        assert not bench.over, "it is fast enough"
        for _ in range(5):
            await bench.look(after=1)
        assert bench.status == 408
        assert "less than 240 bytes a second (min_request_body_rate)" in bench.message
        assert bench.transport.ended
        assert bench.log.lines == [("POST /predictions/m", 408)]

    run(test())


def test_a_rate_of_zero_is_no_limit() -> None:
    async def test() -> None:
        bench = Bench(replace(LIMITS, min_request_body_rate=0))
        await bench.send(HEAD + b"content-length: 100000\r\n\r\n")
        for _ in range(10):
            await bench.look(after=100)
        assert not bench.over

    run(test())


def test_a_request_that_waits_for_its_answer_is_never_cut() -> None:
    """Neither is one behind it whose head has come in part: it is not read."""

    async def test() -> None:
        bench = Bench()
        await bench.send(request("POST", "/predictions/m", b"x") + HEAD)
        job = await bench.registry.next_job()
        for _ in range(10):
            await bench.look(after=1000)
        assert not bench.over
        job.answer(200, "", [], b"")
        await turns()
        await bench.look(after=1)
        await bench.look(after=18)
        assert not bench.over, "its time begins when it is read again"

    run(test())


def test_a_body_that_the_app_does_not_take_is_not_slow() -> None:
    async def test() -> None:
        go = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await go.wait()
            await send_whole(send, 200, [], b"%d" % len(await read_body(receive, None, 1 << 20)))

        connection, transport = connect(app, None, LIMITS)
        connection.data_received(HEAD + b"content-length: 100000\r\n\r\n" + b"x" * 90_000)
        now = connection.loop.time()
        for _ in range(10):
            now += 1000
            connection.look(now)
        assert not transport.ended
        go.set()
        await turns()
        connection.data_received(b"x" * 10_000)
        await turns()
        assert transport.written.endswith(b"\r\n\r\n100000")

    run(test())


# -- a server that was held up --


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (b"", 20),
        (b"GET / HTTP/1.1\r\nx: y", 20),
        (HEAD + b"content-length: 100000\r\n\r\nabc", 11),
        (request("POST", "/predictions/m", b"x"), 75),
    ],
    ids=["nothing", "head", "body", "idle"],
)
def test_time_in_which_the_server_was_held_up_is_not_the_clients(sent: bytes, limit: int) -> None:
    async def test() -> None:
        bench = Bench()
        await bench.send(*filter(None, [sent]))
        if not bench.registry.idle:
            (await bench.registry.next_job()).answer(200, "", [], b"")
        await bench.look()
        bench.now += 1000
        bench.connection.forgive(999.5, bench.now)
        await bench.look()
        assert not bench.over
        await bench.look(after=limit - 2)
        assert not bench.over
        await bench.look(after=2)
        assert bench.over

    run(test())


def test_a_reader_of_replies_and_one_that_lingers_have_their_time_too() -> None:
    async def test() -> None:
        reader = Bench()
        reader.transport.unsent = 100
        await reader.look(after=1)
        await reader.look(after=1)
        lingers = Bench()
        await lingers.send(HEAD + b"content-length: 200000\r\n\r\n")
        for bench in (reader, lingers):
            bench.now += 1000
            bench.connection.forgive(999.5, bench.now)
            await bench.look()
            assert not bench.transport.closed
            await bench.look(after=40)
            assert bench.transport.closed

    run(test())


# -- refused bodies --


def test_the_answer_to_a_refused_body_goes_out_at_once_and_the_rest_is_dropped() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.send(HEAD + b"content-length: 200000\r\n\r\n")
        assert bench.status == 413
        assert b"connection: close" in bench.transport.written
        assert bench.transport.ended
        assert not bench.transport.closed
        await bench.send(*[b"x" * 10_000] * 20)
        assert not bench.transport.closed, "the client ends it"
        bench.connection.connection_lost(None)

    run(test())


@pytest.mark.parametrize("why", ["size", "quiet", "long"])
def test_dropping_ends(why: str) -> None:
    async def test() -> None:
        bench = Bench(replace(LIMITS, max_refused_body_size=5000))
        await bench.send(HEAD + b"content-length: 200000\r\n\r\n")
        if why == "size":
            await bench.send(b"x" * 5000)
            assert not bench.transport.closed
            await bench.send(b"x")
        elif why == "quiet":
            await bench.look(after=QUIET + 1)
        else:
            for _ in range(int(LONGEST)):
                assert not bench.transport.closed
                bench.connection._lingering.drop(1, bench.now)  # type: ignore[union-attr]
                await bench.look(after=1)
            await bench.look(after=1)
        assert bench.transport.closed

    run(test())


def asks_nobody() -> tuple[Http1Connection, FakeTransport]:
    """An app that refuses all requests without reading them, and does not close."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_whole(send, 401 if scope["method"] == "POST" else 200, [], b"no")

    return connect(app, None, replace(LIMITS, max_refused_body_size=5000))


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"content-length: 5000\r\n", True),
        (b"content-length: 5001\r\n", False),
        (b"transfer-encoding: chunked\r\n", False),
        (b"content-length: 10\r\nexpect: 100-continue\r\n", False),
        (b"content-length: 10\r\nconnection: close\r\n", False),
    ],
)
def test_a_small_refused_body_keeps_the_connection(head: bytes, keeps: bool) -> None:
    async def test() -> None:
        connection, transport = asks_nobody()
        connection.data_received(HEAD + head + b"\r\n")
        await turns()
        assert b"100 Continue" not in transport.written
        assert (b"connection: keep-alive" in transport.written) is keeps
        assert transport.ended is not keeps
        if keeps:
            connection.data_received(b"x" * 5000 + b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await turns()
            assert transport.written.count(b"HTTP/1.1 ") == 2
            assert b"HTTP/1.1 200 OK" in transport.written

    run(test())


def test_a_dropped_body_must_come_in_time() -> None:
    async def test() -> None:
        connection, transport = asks_nobody()
        connection.data_received(HEAD + b"content-length: 5000\r\n\r\n")
        await turns()
        now = connection.loop.time()
        connection.look(now + LONGEST - 1)
        assert not transport.closed
        connection.look(now + LONGEST + 1)
        assert transport.closed
        assert transport.written.count(b"HTTP/1.1 ") == 1

    run(test())


def test_a_dropped_body_that_is_too_slow_has_no_second_answer() -> None:
    async def test() -> None:
        connection, transport = asks_nobody()
        connection.data_received(HEAD + b"content-length: 5000\r\n\r\n")
        await turns()
        now = connection.loop.time()
        for seconds in (1, 5, 13):
            assert not transport.ended
            connection.look(now + seconds)
        assert transport.ended
        assert transport.written.count(b"HTTP/1.1 ") == 1

    run(test())


def test_a_shutdown_ends_a_connection_that_lingers() -> None:
    async def test() -> None:
        bench = Bench()
        await bench.send(b"nonsense\r\n\r\n")
        assert not bench.transport.closed
        assert bench.connection.idle_since is None
        bench.connection.shutdown()
        assert not bench.transport.closed, "the client may not have read the reply"
        bench.connection._idle_since -= ON_ITS_WAY
        bench.connection.shutdown()
        assert bench.transport.closed

    run(test())
